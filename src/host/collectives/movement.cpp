// SPDX-License-Identifier: Apache-2.0
// The calls on streams that move data, and barriers.
#include <fmt/format.h>

#include <algorithm>

#include "host/collectives/checks.hpp"
#include "host/collectives/implementation.hpp"
#include "host/collectives/movement_kernels.hpp"
#include "host/collectives/round_kernels.hpp"

namespace beeline {

using detail::checked_bytes;
using detail::MovementPlan;
using detail::plan_of;

namespace {

/// `count` elements in the vector, or in each piece.
detail::VectorCall movement(Operation operation, void* destination, const void* source, std::size_t count,
                            ElementType type) {
  return {{.operation = operation, .element = {type}, .count = count}, destination, source};
}

}  // namespace

void Collectives::Implementation::make_empty(const CallDescription& what, LaunchOptions options) {
  options.blocks = 1;
  detail::launch_handshake(team, options, channel, what, nullptr, nullptr);
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
  require(offset >> ctx.slot_shift == 0 && (offset + extent - 1) >> ctx.slot_shift == 0, Status::unavailable,
          "symmetric: the caller asserts that the destinations are symmetric, and this one lies outside the heap");
  detail::launch_handshake(team, options, channel, plan.call, plan.destination,
                           plan.destination);  // they may be written
  if (beside == nullptr) make_stream_beside();
  stream.record(*beside->begun);
  beside->stream->wait_event(*beside->begun);
  for (std::uint32_t step = 0; step < ctx.size; ++step) {
    const std::uint32_t peer = detail::peer_ahead(ctx, step);
    const detail::Piece<const std::byte> from = plan.outgoing(ctx, peer);
    std::byte* const to = ctx.at(plan.destination + ctx.rank * plan.receive_step, peer);
    // What stays here takes nothing from the link.
    Stream& used = step == 0 ? *beside->stream : stream;
    if (from.bytes != 0 && from.at != to) detail::copy_after_handshake(team, used, to, from.at, from.bytes);
  }
  beside->stream->record(*beside->ended);
  stream.wait_event(*beside->ended);
  detail::launch_round(team, options, channel);
}

void Collectives::Implementation::make_stream_beside() {
  auto stream = world.make_stream();
  auto begun = stream->make_event(), ended = stream->make_event();
  beside = std::make_unique<StreamBeside>(std::move(stream), std::move(begun), std::move(ended));
}

std::uint32_t Collectives::Implementation::checked_root(int root) const {
  if (root < 0 || root >= static_cast<int>(context().size))
    throw Error(Status::invalid_argument, fmt::format("root {} of a team of {}", root, context().size));
  return static_cast<std::uint32_t>(root);
}

void Collectives::Implementation::move(detail::VectorCall call, int root, const CollectiveCall& options) {
  CallDescription& what = call.what;
  const ElementType type = what.element.type;
  const std::size_t members = context().size, rank = context().rank;
  const std::size_t bytes = checked_bytes(what.count, members, type) / members;
  if (detail::has_root(what.operation)) what.root = checked_root(root);
  MovementPlan plan = plan_of(what, call.destination, call.source, bytes);
  const auto extent = [&](bool takes_part, std::size_t step) { return takes_part ? bytes + step * (members - 1) : 0; };
  const detail::VectorPlace to{plan.destination,
                               extent(plan.receiver == no_peer || plan.receiver == rank, plan.receive_step)};
  const detail::VectorPlace from{plan.source, extent(plan.sender == no_peer || plan.sender == rank, plan.send_step)};
  detail::check_vector("destination", to.at, to.bytes, type);
  detail::check_vector("source", from.at, from.bytes, type);
  // What a member sends to itself may be there already; of an all-to-all the rest would overlap.
  const bool in_place = what.operation != Operation::alltoall && to.bytes != 0 && from.bytes != 0 &&
                        plan.destination + rank * plan.receive_step == plan.source + rank * plan.send_step;
  if (!in_place) detail::check_apart(to, from, nullptr);

  const CollectiveCall choice = choose(what, options);
  const LaunchOptions launch = launch_options(what, choice);
  plan.call.algorithm = choice.algorithm;
  if (detail::is_empty(what))
    make_empty(plan.call, launch);
  else if (choice.algorithm == Algorithm::copy_engine)
    move_by_engine(plan, choice);
  else if (options.mappings != nullptr && choice.algorithm == Algorithm::peer && plan.is_full())
    detail::launch_mapped_movement(team, launch, channel, plan, mappings_of(choice, {to.at, to.bytes}, {}), tables);
  else
    detail::launch_movement(team, launch, channel, plan);
  note(what, choice);
}

void Collectives::broadcast_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                      int root, const CollectiveCall& call) {
  implementation_->move(movement(Operation::broadcast, destination, source, count, type), root, call);
}

void Collectives::scatter_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                    int root, const CollectiveCall& call) {
  implementation_->move(movement(Operation::scatter, destination, source, count, type), root, call);
}

void Collectives::gather_on_stream(void* destination, const void* source, std::size_t count, ElementType type, int root,
                                   const CollectiveCall& call) {
  implementation_->move(movement(Operation::gather, destination, source, count, type), root, call);
}

void Collectives::allgather_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                      const CollectiveCall& call) {
  implementation_->move(movement(Operation::allgather, destination, source, count, type), 0, call);
}

void Collectives::alltoall_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                     const CollectiveCall& call) {
  implementation_->move(movement(Operation::alltoall, destination, source, count, type), 0, call);
}

namespace {

/// Elements from the first to the last of all pieces.
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
  const std::size_t members = context().size;
  const std::span<const std::size_t> columns[] = {pieces.send_counts, pieces.send_offsets, pieces.receive_counts,
                                                  pieces.receive_offsets};
  detail::PieceValues<max_ranks> values{};
  for (std::size_t column = 0; column < 4; ++column) {
    require(columns[column].size() == members, Status::invalid_argument,
            fmt::format("{} counts or offsets for a team of {}", columns[column].size(), members));
    std::copy(columns[column].begin(), columns[column].end(), values.values[column]);
  }
  const std::size_t to_bytes = extent(pieces.receive_counts, pieces.receive_offsets, type);
  const std::size_t from_bytes = extent(pieces.send_counts, pieces.send_offsets, type);
  detail::check_vector("destination", destination, to_bytes, type);
  detail::check_vector("source", source, from_bytes, type);
  detail::check_apart({destination, to_bytes}, {source, from_bytes}, nullptr);
  const std::size_t rank = context().rank;
  require(pieces.send_counts[rank] == pieces.receive_counts[rank], Status::invalid_argument,
          fmt::format("rank {} sends {} elements to itself and expects {}", rank, pieces.send_counts[rank],
                      pieces.receive_counts[rank]));
  CallDescription what{.operation = Operation::alltoallv, .element = {type}};
  const CollectiveCall choice = implementation_->choose(what, call);
  const LaunchOptions options = implementation_->launch_options(what, choice);
  what.algorithm = choice.algorithm;
  MovementPlan plan = plan_of(what, destination, source, 0);
  plan.element_bytes = bytes_of(type);
  detail::launch_varied_movement(implementation_->team, options, implementation_->channel, plan, values,
                                 implementation_->tables);
  implementation_->note(what, choice);
}

void Collectives::barrier_on_stream(const BarrierCall& call) {
  const Algorithm algorithm = call.algorithm;
  detail::check_row(Operation::barrier, algorithm);
  const unsigned blocks = algorithm == Algorithm::hierarchical
                              ? std::min(hierarchical_barrier_blocks, implementation_->channel.sessions)
                              : 1;
  const LaunchOptions options =
      implementation_->launch_options({.operation = Operation::barrier}, {.stream = call.stream, .blocks = blocks});
  detail::launch_barrier(implementation_->team, options, implementation_->channel, algorithm);
}

}  // namespace beeline
