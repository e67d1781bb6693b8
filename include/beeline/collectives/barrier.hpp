// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Barriers of a team on a channel, with a choice of algorithm, for a group of each member or for whole grids. The
/// barrier of device/barrier.hpp needs no channel.

#include "beeline/collectives/impl/session_chunks.hpp"
#include "beeline/collectives/session.hpp"

namespace beeline {

/// Options of a barrier in a kernel; the same on all members, except the time-out.
struct SessionBarrierCall {
  Timeout timeout = Timeout::none();  ///< the call's own limit; after `timeout` the same call continues
  Algorithm algorithm = Algorithm::alltoall;
  Order order = Order::memory;  ///< memory: writes before the barrier are visible to all members after it; relaxed:
                                ///< execution only
};

namespace detail {

[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_barrier(Algorithm algorithm) {
  return contains(algorithms_of(Operation::barrier, Control::device), algorithm);
}

template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status meet(Session<Group>& session, const SessionBarrierCall& how) {
  const CallDescription call{.operation = Operation::barrier, .algorithm = how.algorithm};
  if (session.spans_nodes()) [[unlikely]] {
    if (session.is_refused() || how.algorithm != Algorithm::alltoall) return Status::invalid_argument;
    return barrier_by_chunks(session.group(), session.context(), session.pair_channels()[session.index()], call,
                             how.order, how.timeout);
  }
  if (const Status status = session.begin(call); status != Status::ok) return status;
  return session.barrier(how.algorithm, how.order, how.timeout);
}

}  // namespace detail

/// Blocks until every member's group has called this function. With sessions of grids, each block waits for the blocks
/// with the same number.
/// Every thread of the session calls it, and gets the same status: ok, timeout, deadline, aborted; invalid_argument for
/// a grid with more blocks than sessions, for an algorithm that barriers do not have (with members on several nodes any
/// but `alltoall`), or if members make different calls: then the team is aborted. Source: seed 000, 6.7; MPI 4.0, 6.3.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status barrier(Session<Group>& session, const SessionBarrierCall& how = {}) {
  if (!session.exists() || !detail::is_barrier(how.algorithm)) return Status::invalid_argument;
  return detail::meet(session, how);
}

/// Blocks until every thread of every member's grid has called it. First the blocks of each grid synchronize; then
/// block 0 of every member's grid synchronizes with the other blocks 0 in the session; then each block 0 releases its
/// grid. Grids may have more blocks than the channel has sessions. The kernel must be launched with
/// `LaunchOptions::waits`. Orders memory. Returns ok, deadline, aborted; invalid_argument without `waits`, for an
/// algorithm that barriers do not have, or if members make different calls. Source: seed 000, 6.7.1.
template <class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE Status barrier(Grid<BlockGroup>& grid, Session<BlockGroup>& session,
                                                 Algorithm algorithm) {
  if (!detail::is_barrier(algorithm))
    return Status::invalid_argument;  // returned by every block, so that no block
                                      // waits for another
  const Context& ctx = session.context();
  if (const Status status = grid.sync(ctx); status != Status::ok) return status;
  // If block 0 fails, the team is aborted, which ends the waits of the other blocks.
  if (grid.block_rank() == 0)
    if (const Status status = detail::meet(session, {.algorithm = algorithm}); status != Status::ok) return status;
  return grid.sync(ctx);
}

}  // namespace beeline
