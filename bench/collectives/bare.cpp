// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the hardware does without a library: no rank waits for another.

#include "collectives/calls.hpp"
#include "collectives/cases.hpp"
#include "collectives/pair_copies.hpp"
#include "peers/captured_graph.hpp"

namespace beeline::bench {

namespace {

/// A line that is shown beside the others' and is nobody's baseline.
Measurement bare_measurement(const std::string& method, CallSite control, const Workplace& place) {
  Measurement measurement = peer_measurement(method, control, place);
  measurement.compared_as.clear();
  return measurement;
}

Case pair_copies(const CollectiveShape& operation, std::shared_ptr<Workplaces> places) {
  const auto prepare = [=, &operation](Bench& bench, std::uint64_t bytes) {
    const auto place = places->get(bench, operation, bytes);
    const auto copies = std::make_shared<PairCopies>(place);
    std::vector<Measurement> all;
    for (const CopyPlan& plan : copy_plans(place->world(), place->piece_bytes())) {
      all.push_back(bare_measurement("bare/copies", CallSite::stream, *place));
      for (const auto& setting : plan.settings()) all.back().settings.push_back(setting);
      const auto start = [copies, plan](Stream& stream) { copies->start(plan, stream); };
      const Calls calls = calls_on_stream(place->world(), start);
      time_by_host(all.back(), bench, calls);
      verify_by(all.back(), place, place->vectors(), [=] {
        calls.start(), calls.finish();
        place->world().barrier();  // nothing says when the others' copies have come
      });
    }
    return all;
  };
  return {name(operation.operation), "bare/copies", true, prepare};
}

/// What a graph's call takes that does nothing.
Case empty_kernel_in_graph(const CollectiveShape& operation, std::shared_ptr<Workplaces> places) {
  const auto prepare = [=, &operation](Bench& bench, std::uint64_t bytes) {
    const auto place = places->get(bench, operation, bytes);
    Measurement measurement = bare_measurement("bare/empty_kernel", CallSite::graph, *place);
    measurement.bus_factor.reset();
    time_by_host(measurement, bench, calls_by(CallSite::graph, place->world(), launch_empty_kernel, place->bytes()));
    return std::vector{measurement};
  };
  return {name(operation.operation), "bare/empty_kernel", true, prepare};
}

}  // namespace

std::vector<Case> bare_cases(const CollectiveShape& operation, std::shared_ptr<Workplaces> places) {
  std::vector<Case> all;
  if (operation.moves_all() && !operation.varies) all.push_back(pair_copies(operation, places));
  all.push_back(empty_kernel_in_graph(operation, places));
  return all;
}

}  // namespace beeline::bench
