// SPDX-License-Identifier: Apache-2.0
// The calls on streams that move data, and barriers.
#include <fmt/format.h>

#include <algorithm>

#include "host/collectives/checks.hpp"
#include "host/collectives/implementation.hpp"
#include "host/collectives/movement_kernels.hpp"
#include "host/collectives/round_kernels.hpp"
#include "host/ranges.hpp"

namespace beeline {

using detail::checked_bytes;
using detail::MovementPlan;
using detail::plan_of;

void Collectives::Implementation::make_empty(const CallDescription& what, LaunchOptions options) {
  options.blocks = 1;
  if (across_nodes != nullptr) return across_nodes->meet(options, what);
  detail::launch_handshake({team, options, channel}, what, nullptr, nullptr);
}

void Collectives::Implementation::move_by_engine(const MovementPlan& plan, const CollectiveCall& choice) {
  Stream& stream = choice.stream == nullptr ? world.stream() : *choice.stream;
  if (choice.symmetric) return copy_by_engine(plan, stream);
  if (engine == nullptr) make_engine();
  engine->move(plan, stream);
}

void Collectives::Implementation::copy_by_engine(const MovementPlan& plan, Stream& stream) {
  const Context& ctx = context();
  const LaunchOptions options = launch_options({.operation = plan.call.operation}, {.stream = &stream});
  const std::size_t extent = plan.receive_step * (ctx.size - 1) + plan.bytes;
  const auto offset =
      static_cast<std::size_t>(plan.destination - ctx.range) - (std::size_t{ctx.own_world_rank} << ctx.slot_shift);
  if (offset >> ctx.slot_shift != 0 || (offset + extent - 1) >> ctx.slot_shift != 0)
    detail::refuse_not_symmetric(world, {name(plan.call.operation), "destination"}, plan.destination);
  detail::launch_handshake({team, options, channel}, plan.call, plan.destination,
                           plan.destination);  // they may be written
  if (beside == nullptr) make_stream_beside();
  stream.record(*beside->begun);
  beside->stream->wait_event(*beside->begun);
  for (std::uint32_t step = 0; step < ctx.size; ++step) {
    const std::uint32_t peer = detail::peer_ahead(ctx, step);
    const detail::Piece<const std::byte> from = plan.outgoing(ctx, peer);
    std::byte* const to = ctx.at(plan.destination + ctx.rank * plan.receive_step, peer);
    // The copy within this rank does not use the link.
    Stream& used = step == 0 ? *beside->stream : stream;
    if (from.bytes != 0 && from.at != to) detail::copy_after_handshake(team, used, to, from.at, from.bytes);
  }
  beside->stream->record(*beside->ended);
  stream.wait_event(*beside->ended);
  detail::launch_round({team, options, channel});
}

void Collectives::Implementation::make_stream_beside() {
  auto stream = world.make_stream();
  auto begun = stream->make_event(), ended = stream->make_event();
  beside = std::make_unique<StreamBeside>(std::move(stream), std::move(begun), std::move(ended));
}

void Collectives::Implementation::move(const MovementPlan& plan, const CollectiveCall& choice,
                                       const LaunchOptions& launch) {
  if (choice.algorithm == Algorithm::copy_engine) return move_by_engine(plan, choice);
  if (choice.mappings == nullptr || choice.algorithm != Algorithm::peer)
    return detail::launch_movement({team, launch, channel}, plan);
  // Memory that other members use: the destination that they store to, or the source that they read.
  const Context& ctx = context();
  const bool sends = plan.sender == ctx.rank, receives = plan.receiver == no_peer || plan.receiver == ctx.rank;
  const auto whole = [&](std::size_t step) { return step * (ctx.size - 1) + plan.bytes; };
  const SegmentMappings::Vector destination{plan.destination, receives && !sends ? whole(plan.receive_step) : 0},
      source{plan.source, sends ? whole(plan.send_step) : 0};
  detail::launch_mapped_movement({team, launch, channel}, plan, mappings_of(choice, destination, source), tables);
}

void Collectives::Implementation::move_varied(const MovementPlan& plan, const PieceSpans& pieces,
                                              SegmentMappings::Vector destination, const CollectiveCall& choice,
                                              const LaunchOptions& launch) {
  if (across_nodes != nullptr) return across_nodes->move(launch, plan, pieces);
  if (choice.mappings == nullptr || choice.algorithm != Algorithm::peer)
    return detail::launch_varied_movement({team, launch, channel}, plan, pieces, tables);
  detail::launch_mapped_varied_movement({team, launch, channel}, plan, pieces, mappings_of(choice, destination, {}),
                                        tables);
}

namespace {

/// Bytes from the start of the vector to the end of the last piece.
std::size_t extent(std::span<const std::size_t> counts, std::span<const std::size_t> offsets, ElementType type) {
  std::size_t end = 0;
  for (std::size_t peer = 0; peer < counts.size(); ++peer) {
    const std::size_t first = checked_bytes(offsets[peer], 1, type), bytes = checked_bytes(counts[peer], 1, type);
    if (bytes != 0) end = std::max(end, first + bytes);
  }
  return end;
}

}  // namespace

void Collectives::alltoallv_on_stream(void* destination, const void* source, const PieceSpans& pieces, ElementType type,
                                      const CollectiveCall& call) {
  CallDescription what{.operation = Operation::alltoallv, .element = {type}, .algorithm = call.algorithm};
  const detail::ExclusiveCalls::Call made(implementation_->calls, what, call.stream);
  const std::size_t members = team().context().size;
  const std::span<const std::size_t> columns[] = {pieces.send_counts, pieces.send_offsets, pieces.receive_counts,
                                                  pieces.receive_offsets};
  for (const std::span<const std::size_t> column : columns)
    require(column.size() == members, Status::invalid_argument,
            fmt::format("{} counts or offsets for a team of {}", column.size(), members));
  const std::size_t to_bytes = extent(pieces.receive_counts, pieces.receive_offsets, type);
  const std::size_t from_bytes = extent(pieces.send_counts, pieces.send_offsets, type);
  const Context& ctx = team().host_context();
  detail::check_vector(ctx, "destination", destination, to_bytes, type);
  detail::check_vector(ctx, "source", source, from_bytes, type);
  detail::check_apart({destination, to_bytes}, {source, from_bytes});
  const std::size_t rank = team().context().rank;
  require(pieces.send_counts[rank] == pieces.receive_counts[rank], Status::invalid_argument,
          fmt::format("rank {} sends {} elements to itself and expects {}", rank, pieces.send_counts[rank],
                      pieces.receive_counts[rank]));
  const CollectiveCall choice = implementation_->choose(what, call);
  const LaunchOptions options = implementation_->launch_options(what, choice);
  what.algorithm = choice.algorithm;
  MovementPlan plan = plan_of(what, destination, source, 0);
  plan.element_bytes = bytes_of(type);
  implementation_->await_members(choice, to_bytes, options);
  implementation_->move_varied(plan, pieces, {destination, to_bytes}, choice, options);
  implementation_->note(what, choice);
}

void Collectives::barrier_on_stream(const BarrierCall& call) {
  const bool spans_nodes = implementation_->across_nodes != nullptr;
  const Algorithm algorithm = call.algorithm != Algorithm::automatic ? call.algorithm
                              : spans_nodes                          ? Algorithm::across_nodes
                                                                     : Algorithm::alltoall;
  detail::check_row(Operation::barrier, algorithm);
  detail::check_members(team(), algorithm);
  const CallDescription what{.operation = Operation::barrier, .algorithm = algorithm};
  const detail::ExclusiveCalls::Call made(implementation_->calls, what, call.stream);
  const unsigned blocks = algorithm == Algorithm::hierarchical
                              ? std::min(hierarchical_barrier_blocks, implementation_->channel.sessions)
                              : 1;
  const LaunchOptions options =
      implementation_->launch_options({.operation = Operation::barrier}, {.stream = call.stream, .blocks = blocks});
  if (spans_nodes) return implementation_->across_nodes->meet(options, what);
  detail::launch_barrier({implementation_->team, options, implementation_->channel}, algorithm);
}

}  // namespace beeline
