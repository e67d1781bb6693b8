// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Staged: data go through the channel's memory, chunk by chunk. A chunk takes some steps, with a barrier in each step.

#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/collectives/session.hpp"

namespace beeline::detail {

/// Bytes of the channel's memory for the pieces of one sender: at least 16.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE std::size_t staged_piece_bytes(const Session<Group>& session) {
  return session.staging_bytes() / session.context().size & ~std::size_t{15};
}

/// Runs `steps` over `count` elements.
///   steps.most()                     elements of a chunk
///   steps.number()                   steps of a chunk
///   steps.before(step, done, count)  writes elements [done, done + count) into other members' memory
///   steps.after(step, done, count)   processes the data that other members have written
/// All threads of the group call `before` and `after`; their writes are visible to each other in the next call.
template <class Group, class Steps>
[[nodiscard]] BEELINE_HOST_DEVICE Status run_steps(Session<Group>& session, Steps& steps, std::size_t count,
                                                   Timeout timeout) {
  if (session.stage() == 0) {
    // No member still uses the channel's memory for an earlier call.
    if (const Status status = session.barrier(Order::memory, timeout); status != Status::ok) return status;
    session.set_stage(1);
  }
  const std::size_t most = steps.most();
  for (std::size_t done = session.offset(); done < count;) {
    const std::size_t some = count - done < most ? count - done : most;
    // Stages are odd before a step's writes, even after them.
    for (std::uint32_t step = (session.stage() - 1) / 2; step < steps.number(); ++step) {
      if (session.stage() % 2 != 0) {
        session.group().sync();
        steps.before(step, done, some);
        session.set_stage(2 * step + 2);
      }
      if (const Status status = session.barrier(Order::memory, timeout); status != Status::ok) return status;
      steps.after(step, done, some);
      session.set_stage(2 * step + 3);
    }
    done += some;
    session.set_offset(done);
    session.set_stage(1);
  }
  session.group().sync();  // the whole result has arrived
  session.set_stage(0);
  session.set_offset(0);
  return Status::ok;
}

/// Moves pieces through the channel's memory, in chunks that use its halves in turn: a half is written again after the
/// next chunk's barrier, when its data have been copied out.
template <class Group, class Stores>
[[nodiscard]] BEELINE_HOST_DEVICE Status move_staged(Session<Group>& session, const MovementPlan& plan, Stores& stores,
                                                     Timeout timeout) {
  const Context& ctx = session.context();
  const std::size_t most = staged_piece_bytes(session);
  const std::uint64_t steps = 2 * std::uint64_t{session.stage() - 1};  // two steps for each chunk: in and out
  for (std::uint64_t step = session.offset(); step < steps;) {
    const std::size_t done = step / 2 * most;
    std::byte* const half = session.staging(static_cast<std::uint32_t>(step / 2 & 1u));
    if (step % 2 == 0) {
      BEELINE_NO_UNROLL
      for (std::uint32_t distance = 1; distance < ctx.size; ++distance) {
        const std::uint32_t peer = peer_ahead(ctx, distance);
        const Piece<const std::byte> piece = plan.outgoing(ctx, peer).part(done, most);
        if (piece.bytes != 0) stores.put(half + ctx.rank * most, piece.at, piece.bytes, peer);
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

}  // namespace beeline::detail
