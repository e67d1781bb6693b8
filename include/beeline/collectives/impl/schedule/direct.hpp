// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Exchanges by stores into the peers' memory: of the calling threads, or in bulk.

#include "beeline/collectives/impl/schedule/relay.hpp"

namespace beeline::detail {

/// Every piece to where it is to lie.
template <class Group, class Mover>
BEELINE_HOST_DEVICE void put_pieces(const Session<Group>& session, const MovementPlan& plan, Mover& mover) {
  const Context& ctx = session.context();
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 1; step < ctx.size; ++step) {
    const std::uint32_t peer = peer_ahead(ctx, step);
    const Piece<const std::byte> piece = plan.outgoing(ctx, peer);
    if (piece.bytes != 0)
      mover.put(own_slot(ctx) + session.heard_word(peer, told_place, 0), piece.at, piece.bytes, peer);
  }
}

/// Pieces through the channel's memory, in chunks, by halves in turn: a half is written again after the next chunk's
/// barrier, so when what was in it has been copied out.
template <class Group, class Mover>
[[nodiscard]] BEELINE_HOST_DEVICE Status move_staged(Session<Group>& session, const MovementPlan& plan, Mover& mover,
                                                     Timeout timeout) {
  const Context& ctx = session.context();
  const std::size_t most = staged_piece_bytes(session);
  const std::uint64_t steps = 2 * std::uint64_t{session.stage() - 1};  // for each chunk in and out
  for (std::uint64_t step = session.offset(); step < steps;) {
    const std::size_t done = step / 2 * most;
    std::byte* const half = session.staging(static_cast<std::uint32_t>(step / 2 & 1u));
    if (step % 2 == 0) {
      BEELINE_NO_UNROLL
      for (std::uint32_t distance = 1; distance < ctx.size; ++distance) {
        const std::uint32_t peer = peer_ahead(ctx, distance);
        const Piece<const std::byte> piece = plan.outgoing(ctx, peer).part(done, most);
        if (piece.bytes != 0) mover.put(half + ctx.rank * most, piece.at, piece.bytes, peer);
      }
      session.set_offset(++step);
    }
    if (const Status status = session.barrier(Order::memory, timeout); status != Status::ok) return status;
    BEELINE_NO_UNROLL
    for (std::uint32_t distance = 1; distance < ctx.size; ++distance) {
      const std::uint32_t peer = peer_ahead(ctx, distance);
      const Piece<std::byte> piece = plan.incoming(ctx, peer).part(done, most);
      if (piece.bytes != 0) copy_bytes(session.group(), piece.at, half + peer * most, piece.bytes);
    }
    session.set_offset(++step);
  }
  return Status::ok;
}

/// What follows the telling of places, before anybody is waited for again.
template <class Group, class Mover>
BEELINE_HOST_DEVICE void begin_direct(Session<Group>& session, const MovementPlan& plan, Mover& mover, bool outside) {
  if constexpr (Mover::by_threads)
    if (plan.sender != no_peer && begin_from_sender(session, plan, outside)) return;
  const std::size_t most = staged_piece_bytes(session);
  const std::size_t chunks = outside ? (longest_of_all(session) + most - 1) / most : 0;
  session.note(outside ? Transfer::staged : Transfer::in_place);
  session.set_stage(static_cast<std::uint32_t>(DirectStage::stored + chunks));
  const OwnPiece own(session.context(), plan);
  if (own.first) copy_own_piece(session.group(), own);
  if (!outside) put_pieces(session, plan, mover);
  if (!own.first) copy_own_piece(session.group(), own);
}

/// What is left of an exchange that has begun.
template <class Group, class Mover>
[[nodiscard]] BEELINE_HOST_DEVICE Status end_direct(Session<Group>& session, const MovementPlan& plan, Mover& mover,
                                                    Timeout timeout) {
  Status status = Status::ok;
  if constexpr (Mover::by_threads)
    if (session.stage() == DirectStage::relaying) status = relay_pieces(session, plan, timeout);
  if (status != Status::ok) return status;
  status = session.stage() == DirectStage::stored ? session.barrier(Order::memory, timeout)
                                                  : move_staged(session, plan, mover, timeout);
  if (status != Status::ok) return status;
  session.group().sync();  // the whole result is there
  session.set_stage(0);
  session.set_offset(0);
  return Status::ok;
}

/// Exchange of any size. If one piece of any member is to lie outside its slot, all go through the channel's memory.
template <class Group, class Mover>
[[nodiscard]] BEELINE_HOST_DEVICE Status move_direct(Session<Group>& session, const MovementPlan& plan, Mover& mover,
                                                     Timeout timeout) {
  if (session.stage() == 0) {
    bool outside = false;
    if (const Status status = tell_places(session, plan, timeout, outside); status != Status::ok) return status;
    begin_direct(session, plan, mover, outside);
  }
  return end_direct(session, plan, mover, timeout);
}

}  // namespace beeline::detail
