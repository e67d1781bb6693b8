// SPDX-License-Identifier: Apache-2.0
#include "collectives/calls.hpp"

#include "beeline/device/impl/machine.hpp"
#include "peers/captured_graph.hpp"

namespace beeline::bench {

namespace {

/// Collective. The nanoseconds of each batch on the slowest rank.
std::vector<double> time_calls(const Bench& bench, Rounds rounds, const Calls& calls) {
  bench.world().barrier();
  for (std::uint32_t i = 0; i < rounds.warm_up; ++i) calls.start();
  calls.finish();
  std::vector<double> times;
  for (std::uint32_t batch = 0; batch < rounds.batches; ++batch) {
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < rounds.iterations; ++i) calls.start();
    calls.finish();
    times.push_back(static_cast<double>(machine::clock_ns() - start));
  }
  return bench.slowest(times);
}

}  // namespace

Calls calls_on_stream(World& world, const StreamStart& start) {
  return {[&world, start] { start(world.stream()); }, [&world] { world.synchronize(); }};
}

Calls calls_in_graph(World& world, const StreamStart& start, unsigned each) {
  require(world.device().is_gpu(), Status::unavailable, "host ranks have no CUDA graphs");
  // Code that loads or allocates at its first use must have run before: a capture does not allow that.
  start(world.stream());
  world.synchronize();
  // All graphs are captured from the default stream: graphs of one stream run one after the other, so they count only
  // once in the residency ledger.
  const auto graph = std::make_shared<CapturedGraph>(world.stream(), [&] {
    for (unsigned i = 0; i < each; ++i) start(world.stream());
  });
  graph->launch();  // if CUDA refuses the first launch, the method is unavailable, too
  world.synchronize();
  // The capture of `start` keeps its objects alive.
  return {[graph, start] { graph->launch(); }, [&world] { world.synchronize(); }, each};
}

Calls calls_by(CallSite control, World& world, const StreamStart& start, std::uint64_t bytes) {
  return control == CallSite::graph ? calls_in_graph(world, start, graph_calls(bytes)) : calls_on_stream(world, start);
}

void time_by_host(Measurement& measurement, const Bench& bench, const Calls& calls) {
  measurement.operations_per_iteration = calls.each;
  if (calls.each > 1) measurement.settings.emplace_back("calls_of_graph", std::uint64_t{calls.each});
  measurement.time = [&bench, calls](Rounds rounds) { return time_calls(bench, rounds, calls); };
}

void verify_by(Measurement& measurement, std::shared_ptr<Workplace> place, const VectorPair& vectors,
               std::function<void()> call) {
  measurement.verify = [=](std::uint64_t seed) { return place->verify(vectors, seed, call); };
}

}  // namespace beeline::bench
