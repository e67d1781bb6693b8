// SPDX-License-Identifier: Apache-2.0
/// @file
/// The hardware without a library: no rank waits for another. An all-gather or all-to-all consists of the copies
/// between all pairs of ranks.

#include <algorithm>

#include "collectives/calls.hpp"
#include "collectives/cases.hpp"
#include "peers/bare_copy.hpp"
#include "peers/captured_graph.hpp"

namespace beeline::bench {

namespace {

constexpr std::uint64_t mib = 1 << 20, shortest_chunk = 4 * mib;
constexpr unsigned most_streams = 4;

/// Bytes of a piece that each stream copies: whole words of 16 bytes.
constexpr std::uint64_t share_of(std::uint64_t piece_bytes, unsigned streams) {
  return (piece_bytes / streams + 15) / 16 * 16;
}

/// How a rank distributes its copies over streams.
struct CopyPlan {
  unsigned streams = 1;       ///< for each pair of ranks
  std::uint64_t chunk_bytes;  ///< largest size of one copy
  bool in_turns = false;      ///< one peer after the other on the same streams; otherwise all peers at once

  [[nodiscard]] Settings settings() const {
    return {{"streams_per_pair", std::uint64_t{streams}},
            {"chunk_bytes", chunk_bytes},
            {"order", in_turns ? "in_turns" : "together"}};
  }
};

enum class CopiedAs : std::uint8_t { every_plan, whole_pieces };

std::vector<CopyPlan> plans_in_order(std::uint64_t piece_bytes, bool in_turns) {
  std::vector<CopyPlan> plans;
  for (unsigned streams : {1u, 2u, most_streams}) {
    const std::uint64_t share = share_of(piece_bytes, streams);
    if (streams > 1 && share < shortest_chunk) break;
    for (std::uint64_t chunk : {shortest_chunk, 16 * mib, 64 * mib, 256 * mib})
      if (chunk < share) plans.push_back({streams, chunk, in_turns});
    plans.push_back({streams, share, in_turns});
  }
  return plans;
}

/// The plans that may be the fastest for pieces of `piece_bytes`: 1, 2 and 4 streams per pair, chunks of 4 to 256 MiB
/// and whole shares, and both orders if there are more than two GPUs. Host ranks have one plan: the calling thread
/// copies.
std::vector<CopyPlan> copy_plans(const World& world, std::uint64_t piece_bytes) {
  if (!world.device().is_gpu()) return {{.chunk_bytes = piece_bytes}};
  std::vector<CopyPlan> plans = plans_in_order(piece_bytes, false);
  if (world.size() > 2) std::ranges::copy(plans_in_order(piece_bytes, true), std::back_inserter(plans));
  return plans;
}

/// The streams of a rank, shared by all plans.
class PairCopies {
 public:
  explicit PairCopies(std::shared_ptr<Workplace> place);

  /// Enqueues the copies of one call after the work of `stream`; later work of `stream` waits for the copies.
  void start(const CopyPlan& plan, Stream& stream);

 private:
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> copied;
  };

  [[nodiscard]] Lane& lane(const CopyPlan& plan, int distance, unsigned stream);
  void copy_piece(const CopyPlan& plan, int distance, Stream& caller);

  std::shared_ptr<Workplace> place_;
  std::vector<Lane> lanes_;  ///< `most_streams` of each distance; none on a host rank
  std::unique_ptr<Event> begun_;
};

PairCopies::PairCopies(std::shared_ptr<Workplace> place) : place_(std::move(place)) {
  World& world = place_->world();
  if (!world.device().is_gpu()) return;
  for (unsigned i = 0; i < most_streams * static_cast<unsigned>(world.size()); ++i) {
    auto stream = world.make_stream();
    auto copied = stream->make_event();
    lanes_.push_back({std::move(stream), std::move(copied)});
  }
  begun_ = world.stream().make_event();
}

void PairCopies::start(const CopyPlan& plan, Stream& stream) {
  const int ranks = place_->world().size();
  // In turns, copies to other ranks share the lanes of distance 1; a rank's copy to itself uses no link.
  const int lane_groups = lanes_.empty() ? 0 : plan.in_turns ? std::min(ranks, 2) : ranks;
  if (lane_groups > 0) stream.record(*begun_);
  for (int group = 0; group < lane_groups; ++group)
    for (unsigned i = 0; i < plan.streams; ++i) lane(plan, group, i).stream->wait_event(*begun_);
  for (int distance = 0; distance < ranks; ++distance) copy_piece(plan, distance, stream);
  for (int group = 0; group < lane_groups; ++group)
    for (unsigned i = 0; i < plan.streams; ++i) {
      Lane& mine = lane(plan, group, i);
      mine.stream->record(*mine.copied);
      stream.wait_event(*mine.copied);
    }
}

PairCopies::Lane& PairCopies::lane(const CopyPlan& plan, int distance, unsigned stream) {
  const int group = plan.in_turns ? std::min(distance, 1) : distance;
  return lanes_[static_cast<unsigned>(group) * most_streams + stream];
}

void PairCopies::copy_piece(const CopyPlan& plan, int distance, Stream& caller) {
  const World& world = place_->world();
  const auto rank = static_cast<unsigned>(world.rank());
  const auto peer = (rank + static_cast<unsigned>(distance)) % static_cast<unsigned>(world.size());
  const std::uint64_t piece = place_->piece_bytes();
  const VectorPair vectors = place_->vectors();
  const std::byte* from = static_cast<const std::byte*>(vectors.source);
  if (place_->part().source_pieces > 1) from += peer * piece;
  std::byte* const to = world.at(static_cast<std::byte*>(vectors.destination) + rank * piece, static_cast<int>(peer));
  unsigned turn = 0;
  for (std::uint64_t at = 0; at < piece; at += plan.chunk_bytes, turn = (turn + 1) % plan.streams) {
    Stream& stream = lanes_.empty() ? caller : *lane(plan, distance, turn).stream;
    bare_copy(stream, to + at, from + at, std::min(plan.chunk_bytes, piece - at));
  }
}

/// A line for information: other lines are not compared with it.
Measurement bare_measurement(const std::string& method, CallSite control, const Workplace& place) {
  Measurement measurement = peer_measurement(method, control, place);
  measurement.compared_as.clear();
  return measurement;
}

Case pair_copies(const CollectiveShape& operation, std::shared_ptr<Workplaces> places, CopiedAs copied_as) {
  const auto prepare = [=, &operation](Bench& bench, std::uint64_t bytes) {
    bench.require_loads_and_stores();
    const auto place = places->get(bench, operation, bytes);
    const auto copies = std::make_shared<PairCopies>(place);
    const std::vector<CopyPlan> plans = copied_as == CopiedAs::whole_pieces
                                            ? std::vector<CopyPlan>{{.chunk_bytes = place->piece_bytes()}}
                                            : copy_plans(place->world(), place->piece_bytes());
    std::vector<Measurement> all;
    for (const CopyPlan& plan : plans) {
      all.push_back(bare_measurement("bare/copies", CallSite::stream, *place));
      for (const auto& setting : plan.settings()) all.back().settings.push_back(setting);
      const auto start = [copies, plan](Stream& stream) { copies->start(plan, stream); };
      const Calls calls = calls_on_stream(place->world(), start);
      time_by_host(all.back(), bench, calls);
      verify_by(all.back(), place, place->vectors(), [=] {
        calls.start(), calls.finish();
        place->world().barrier();  // nothing signals that the other ranks' copies have arrived
      });
    }
    return all;
  };
  return {name(operation.operation), "bare/copies", true, prepare};
}

/// The time of a graph's call that does nothing.
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

Case bare_copies(const CollectiveShape& operation, std::shared_ptr<Workplaces> places) {
  return pair_copies(operation, std::move(places), CopiedAs::whole_pieces);
}

std::vector<Case> bare_cases(const CollectiveShape& operation, std::shared_ptr<Workplaces> places) {
  std::vector<Case> all;
  if (operation.moves_all() && !operation.varies) all.push_back(pair_copies(operation, places, CopiedAs::every_plan));
  all.push_back(empty_kernel_in_graph(operation, places));
  return all;
}

}  // namespace beeline::bench
