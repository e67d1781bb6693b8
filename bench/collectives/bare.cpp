// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the hardware does without a library: no rank waits for another.

#include "collectives/calls.hpp"
#include "collectives/cases.hpp"
#include "peers/bare_copy.hpp"
#include "peers/captured_graph.hpp"

namespace beeline::bench {

namespace {

/// All pairs' copies of all-gather and all-to-all, each on a stream of its own.
class PairCopies {
 public:
  explicit PairCopies(std::shared_ptr<Workplace> place) : place_(std::move(place)) {
    World& world = place_->world();
    if (!world.device().is_gpu()) return;  // the calling thread copies
    for (int peer = 0; peer < world.size(); ++peer) {
      streams_.push_back(world.make_stream());
      copied_.push_back(streams_.back()->make_event());
    }
    begun_ = world.stream().make_event();
  }

  void start(Stream& stream) {
    if (!streams_.empty()) stream.record(*begun_);
    const int ranks = place_->world().size();
    for (int distance = 0; distance < ranks; ++distance) {
      const int peer = (place_->world().rank() + distance) % ranks;
      Stream& mine = streams_.empty() ? stream : *streams_[static_cast<std::size_t>(distance)];
      if (!streams_.empty()) mine.wait_event(*begun_);
      copy_to(peer, mine);
      if (!streams_.empty()) mine.record(*copied_[static_cast<std::size_t>(distance)]);
    }
    for (const auto& event : copied_) stream.wait_event(*event);
  }

 private:
  void copy_to(int peer, Stream& stream) {
    const World& world = place_->world();
    const std::uint64_t piece = place_->piece_bytes();
    const VectorPair vectors = place_->vectors();
    const std::byte* from = static_cast<const std::byte*>(vectors.source);
    if (place_->part().source_pieces > 1) from += static_cast<unsigned>(peer) * piece;
    std::byte* const to = static_cast<std::byte*>(vectors.destination) + static_cast<unsigned>(world.rank()) * piece;
    bare_copy(stream, world.at(to, peer), from, piece);
  }

  std::shared_ptr<Workplace> place_;
  std::vector<std::unique_ptr<Stream>> streams_;  ///< by distance
  std::vector<std::unique_ptr<Event>> copied_;    ///< of each stream
  std::unique_ptr<Event> begun_;
};

/// A line that is shown beside the others' and is nobody's baseline.
Measurement bare_measurement(const std::string& method, Control control, const Workplace& place) {
  Measurement measurement = peer_measurement(method, control, place);
  measurement.compared_as.clear();
  return measurement;
}

Case pair_copies(const MeasuredOperation& operation, std::shared_ptr<Workplaces> places) {
  const auto prepare = [=, &operation](Session& session, std::uint64_t bytes) {
    const auto place = places->get(session, operation, bytes);
    const auto copies = std::make_shared<PairCopies>(place);
    Measurement measurement = bare_measurement("bare/copies", Control::stream, *place);
    const Calls calls = calls_on_stream(place->world(), [copies](Stream& stream) { copies->start(stream); });
    time_by_host(measurement, session, calls);
    verify_by(measurement, place, place->vectors(), [=] {
      calls.start(), calls.finish();
      place->world().barrier();  // nothing says when the others' copies have come
    });
    return std::vector{measurement};
  };
  return {name(operation.kind), "bare/copies", true, prepare};
}

/// What a graph's call takes that does nothing.
Case empty_kernel_in_graph(const MeasuredOperation& operation, std::shared_ptr<Workplaces> places) {
  const auto prepare = [=, &operation](Session& session, std::uint64_t bytes) {
    const auto place = places->get(session, operation, bytes);
    Measurement measurement = bare_measurement("bare/empty_kernel", Control::graph, *place);
    measurement.bus_factor.reset();
    time_by_host(measurement, session, calls_by(Control::graph, place->world(), launch_empty_kernel, place->bytes()));
    return std::vector{measurement};
  };
  return {name(operation.kind), "bare/empty_kernel", true, prepare};
}

}  // namespace

std::vector<Case> bare_cases(const MeasuredOperation& operation, std::shared_ptr<Workplaces> places) {
  std::vector<Case> all;
  if (operation.kind == CollectiveOperation::allgather || operation.kind == CollectiveOperation::alltoall)
    all.push_back(pair_copies(operation, places));
  all.push_back(empty_kernel_in_graph(operation, places));
  return all;
}

}  // namespace beeline::bench
