// SPDX-License-Identifier: Apache-2.0
/// @file
/// Beeline's own collectives: on a stream, in a graph, and in a loop inside one kernel.

#include "collectives/calls.hpp"
#include "collectives/cases.hpp"

namespace beeline::bench {

namespace {

using Complete = Measurement (*)(Measurement, const CollectiveOperation&, std::shared_ptr<Workplace>,
                                 const StreamCall&);

Case streamed(const CollectiveOperation& operation, const MeasuredAlgorithm& measured,
              std::shared_ptr<Workplaces> places, Control control, Complete complete) {
  const std::string method = method_of(control, measured.algorithm);
  const auto prepare = [=, &operation](Session& session, std::uint64_t bytes) {
    std::vector<Measurement> all;
    if (bytes > measured.most_bytes || bytes < measured.least_bytes) return all;
    const auto place = places->get(session, bytes);
    for (unsigned blocks : block_counts(session)) {
      const CollectiveCall call{.algorithm = measured.algorithm, .blocks = blocks};
      const auto start = [=, &operation](Stream& stream) {
        CollectiveCall mine = call;
        mine.stream = &stream;
        operation.start(place->collectives(), place->vectors(), mine);
      };
      Measurement measurement = collective_measurement(operation, method, control, *place);
      add_choice(measurement, operation.choice(place->collectives(), place->vectors(), call));
      all.push_back(complete(std::move(measurement), operation, place, {start, place->vectors()}));
    }
    return all;
  };
  return {operation.name, method, true, prepare};
}

/// Threads of the one block: a warp, and as many as there are words of 8 bytes.
std::vector<unsigned> kernel_threads(const World& world, std::uint64_t bytes) {
  if (!world.device().is_gpu()) return {static_cast<unsigned>(world.config().host_threads)};
  std::vector<unsigned> threads = {32};
  for (unsigned more : {128u, 512u})
    if (bytes > std::uint64_t{threads.back()} * 8) threads.push_back(more);
  return threads;
}

}  // namespace

Case collective_on_stream(const CollectiveOperation& operation, const MeasuredAlgorithm& measured,
                          std::shared_ptr<Workplaces> places) {
  return streamed(operation, measured, std::move(places), Control::stream, measured_on_stream);
}

Case collective_in_graph(const CollectiveOperation& operation, const MeasuredAlgorithm& measured,
                         std::shared_ptr<Workplaces> places) {
  return streamed(operation, measured, std::move(places), Control::graph, measured_in_graph);
}

Case collective_in_kernel(const CollectiveOperation& operation, const MeasuredAlgorithm& measured,
                          std::shared_ptr<Workplaces> places) {
  const std::string method = method_of(Control::device, measured.algorithm);
  const auto prepare = [=, &operation](Session& session, std::uint64_t bytes) {
    std::vector<Measurement> all;
    if (bytes > most_kernel_bytes) return all;
    const auto place = places->get(session, bytes);
    const auto timed = std::make_shared<TimedKernel>(session);
    for (unsigned threads : kernel_threads(session.world(), bytes)) {
      const auto run = [=, &operation](Rounds rounds) {
        return operation.in_kernel(*timed, {threads, rounds, measured.algorithm}, place->collectives().channel(),
                                   place->vectors());
      };
      all.push_back(collective_measurement(operation, method, Control::device, *place));
      all.back().settings.emplace_back("algorithm", name(measured.algorithm));
      all.back().settings.emplace_back("blocks", std::uint64_t{1});
      all.back().settings.emplace_back("threads_per_block", std::uint64_t{threads});
      all.back().time = run;
      all.back().verify = [=, &operation](std::uint64_t seed) {
        return place->verify(operation, place->vectors(), seed, [&] { static_cast<void>(run({})); });
      };
    }
    return all;
  };
  return {operation.name, method, true, prepare};
}

}  // namespace beeline::bench
