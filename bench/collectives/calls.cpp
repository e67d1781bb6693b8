// SPDX-License-Identifier: Apache-2.0
#include "collectives/calls.hpp"

#include "peers/captured_graph.hpp"

namespace beeline::bench {

namespace {

/// A graph of the default stream's. All are captured from that one: graphs of one stream take turns, so they count once
/// in the residency ledger.
class GraphLoop {
 public:
  GraphLoop(World& world, const StreamCall& call)
      : world_(world), graph_(world.stream(), [&] {
          for (unsigned i = 0; i < graph_calls; ++i) call.start(world.stream());
        }) {}

  void start() { graph_.launch(); }
  void finish() { world_.synchronize(); }

 private:
  World& world_;
  CapturedGraph graph_;
};

Measurement complete(Measurement measurement, const CollectiveOperation& operation, std::shared_ptr<Workplace> place,
                     const VectorPair& vectors, const std::function<void()>& start,
                     const std::function<void()>& finish) {
  measurement.time = [=](Rounds rounds) { return time_calls(place->session(), rounds, start, finish); };
  measurement.verify = [=, &operation](std::uint64_t seed) {
    return place->verify(operation, vectors, seed, [&] { start(), finish(); });
  };
  return measurement;
}

}  // namespace

Measurement measured_on_stream(Measurement measurement, const CollectiveOperation& operation,
                               std::shared_ptr<Workplace> place, const StreamCall& call) {
  const auto start = [place, call] { call.start(place->world().stream()); };
  const auto finish = [place] { place->world().synchronize(); };
  return complete(std::move(measurement), operation, place, call.vectors, start, finish);
}

Measurement measured_in_graph(Measurement measurement, const CollectiveOperation& operation,
                              std::shared_ptr<Workplace> place, const StreamCall& call) {
  // Whatever loads or allocates at its first use must have done so: a capture allows none of it.
  const bool on_gpu = place->world().device().is_gpu();
  if (on_gpu) call.start(place->world().stream());
  if (on_gpu) place->world().synchronize();
  const auto loop = std::make_shared<GraphLoop>(place->world(), call);
  measurement.operations_per_iteration = graph_calls;
  return complete(
      std::move(measurement), operation, place, call.vectors, [loop] { loop->start(); }, [loop] { loop->finish(); });
}

}  // namespace beeline::bench
