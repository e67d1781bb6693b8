// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Exchanges by stores into the peers' memory: of the calling threads, or in bulk.

#include "beeline/collectives/exchange_meeting.hpp"
#include "beeline/device/bulk.hpp"

namespace beeline::detail {

/// Copies to `to` on `peer`: by loads and stores of the group.
template <class Group>
struct StoreMover {
  const Group& group;
  const Context& ctx;
  BEELINE_HOST_DEVICE void put(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t peer) {
    copy_bytes(group, ctx.at(to, peer), from, bytes);
  }
};
/// The same in bulk.
template <class BlockGroup>
struct BulkMover {
  BulkPort<BlockGroup> port;
  BEELINE_HOST_DEVICE void put(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t peer) {
    static_cast<void>(port.put(to, from, bytes, peer));  // of members of one kind nothing is refused
  }
};

/// Bytes of the channel's memory for the pieces of one sender: at least 16.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE std::size_t staged_piece_bytes(const Lane<Group>& lane) {
  return lane.staging_bytes() / lane.context().size & ~std::size_t{15};
}

/// Every piece to where it is to lie.
template <class Group, class Mover>
BEELINE_HOST_DEVICE void put_pieces(const Lane<Group>& lane, const ExchangePlan& plan, Mover& mover) {
  const Context& ctx = lane.context();
  std::byte* const slot = ctx.range + (std::size_t{ctx.own_world_rank} << ctx.slot_shift);
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 1; step < ctx.size; ++step) {
    const std::uint32_t peer = peer_ahead(ctx, step);
    const Piece<const std::byte> piece = plan.outgoing(ctx, peer);
    if (piece.bytes != 0) mover.put(slot + told(lane, peer, told_place), piece.at, piece.bytes, peer);
  }
}

/// Pieces through the channel's memory, in chunks, by halves in turn: a half is written again after the next chunk's
/// barrier, so when what was in it has been copied out.
template <class Group, class Mover>
[[nodiscard]] BEELINE_HOST_DEVICE Status exchange_staged(Lane<Group>& lane, const ExchangePlan& plan, Mover& mover,
                                                         Timeout timeout) {
  const Context& ctx = lane.context();
  const std::size_t most = staged_piece_bytes(lane);
  const std::uint64_t steps = 2 * std::uint64_t{lane.stage() - 1};  // for each chunk in and out
  for (std::uint64_t step = lane.offset(); step < steps;) {
    const std::size_t done = step / 2 * most;
    std::byte* const half = lane.staging(static_cast<std::uint32_t>(step / 2 & 1u));
    if (step % 2 == 0) {
      BEELINE_NO_UNROLL
      for (std::uint32_t distance = 1; distance < ctx.size; ++distance) {
        const std::uint32_t peer = peer_ahead(ctx, distance);
        const Piece<const std::byte> piece = plan.outgoing(ctx, peer).part(done, most);
        if (piece.bytes != 0) mover.put(half + ctx.rank * most, piece.at, piece.bytes, peer);
      }
      lane.set_offset(++step);
    }
    if (const Status status = lane.barrier(Order::memory, timeout); status != Status::ok) return status;
    BEELINE_NO_UNROLL
    for (std::uint32_t distance = 1; distance < ctx.size; ++distance) {
      const std::uint32_t peer = peer_ahead(ctx, distance);
      const Piece<std::byte> piece = plan.incoming(ctx, peer).part(done, most);
      if (piece.bytes != 0) copy_bytes(lane.group(), piece.at, half + peer * most, piece.bytes);
    }
    lane.set_offset(++step);
  }
  return Status::ok;
}

/// What follows the telling of places, before anybody is waited for again.
template <class Group, class Mover>
BEELINE_HOST_DEVICE void begin_direct(Lane<Group>& lane, const ExchangePlan& plan, Mover& mover, const Needs& needs) {
  const std::size_t most = staged_piece_bytes(lane);
  const std::size_t chunks = needs.outside ? (needs.longest + most - 1) / most : 0;
  lane.note(needs.outside ? Transfer::staged : Transfer::in_place);
  lane.set_stage(static_cast<std::uint32_t>(1 + chunks));
  const bool own_first = lane.index() % 2 != 0;  // what stays here takes nothing from the link that others use
  if (own_first) copy_own_piece(lane, plan);
  if (!needs.outside) put_pieces(lane, plan, mover);
  if (!own_first) copy_own_piece(lane, plan);
}

/// Exchange of any size. If one piece of any member is to lie outside its slot, all go through the channel's memory.
template <class Group, class Mover>
[[nodiscard]] BEELINE_HOST_DEVICE Status exchange_direct(Lane<Group>& lane, const ExchangePlan& plan, Mover& mover,
                                                         Timeout timeout) {
  if (lane.stage() == 0) {
    if (const Status status = tell_places(lane, plan, timeout); status != Status::ok) return status;
    begin_direct(lane, plan, mover, needs_of_all(lane));
  }
  const Status status =
      lane.stage() == 1 ? lane.barrier(Order::memory, timeout) : exchange_staged(lane, plan, mover, timeout);
  if (status != Status::ok) return status;
  lane.group().sync();  // the whole result is there
  lane.set_stage(0);
  lane.set_offset(0);
  return Status::ok;
}

}  // namespace beeline::detail
