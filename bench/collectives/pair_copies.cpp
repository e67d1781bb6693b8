// SPDX-License-Identifier: Apache-2.0
#include "collectives/pair_copies.hpp"

#include <algorithm>

#include "peers/bare_copy.hpp"

namespace beeline::bench {

namespace {

constexpr std::uint64_t mib = 1 << 20, shortest_chunk = 4 * mib;
constexpr unsigned most_streams = 4;

/// Bytes of a piece that go by each stream: whole words of 16 bytes.
constexpr std::uint64_t share_of(std::uint64_t piece_bytes, unsigned streams) {
  return (piece_bytes / streams + 15) / 16 * 16;
}

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

}  // namespace

Settings CopyPlan::settings() const {
  return {{"streams_per_pair", std::uint64_t{streams}},
          {"chunk_bytes", chunk_bytes},
          {"order", in_turns ? "in_turns" : "together"}};
}

std::vector<CopyPlan> copy_plans(const World& world, std::uint64_t piece_bytes) {
  if (!world.device().is_gpu()) return {{.chunk_bytes = piece_bytes}};
  std::vector<CopyPlan> plans = plans_in_order(piece_bytes, false);
  if (world.size() > 2) std::ranges::copy(plans_in_order(piece_bytes, true), std::back_inserter(plans));
  return plans;
}

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
  // In turns, the other ranks share the lanes of distance 1; what a rank sends to itself takes nothing from a link.
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

}  // namespace beeline::bench
