// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Barriers of a team on a channel, by algorithm, for a group of each member or for whole grids. Without a channel
/// there is the one of device/barrier.hpp.

#include "beeline/collectives/call_check.hpp"
#include "beeline/collectives/lane.hpp"
#include "beeline/device/grid.hpp"

namespace beeline {

/// Blocks until the lane's group of each member has called it.
///   order    memory: what every member did before is visible to all after; relaxed: execution only
///   timeout  the call's own limit; after `timeout` the same call continues
/// Every thread of the group calls it, and gets the same status: ok, timeout, deadline, aborted; on channels that
/// check, invalid_argument when members make different calls or this one makes two at once: then the team is aborted.
/// Source: seed 000, 6.7; MPI 4.0, 6.3.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status barrier(Lane<Group>& lane, BarrierAlgorithm algorithm,
                                                 Order order = Order::memory, Timeout timeout = Timeout::none()) {
  const CallSignature call{.operation = CollectiveOperation::barrier, .algorithm = static_cast<Algorithm>(algorithm)};
  if (const Status status = detail::compare_calls(lane, call, timeout); status != Status::ok) return status;
  const Status status = lane.barrier(algorithm, order, timeout);
  if (status == Status::ok) lane.set_checked(false);
  return status;
}

/// As above by one group of each member, on lane 0: nobody else uses the channel meanwhile.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status barrier(const Group& group, const Context& ctx,
                                                 const CollectiveChannel& channel, BarrierAlgorithm algorithm,
                                                 Order order = Order::memory, Timeout timeout = Timeout::none()) {
  Lane<Group> lane(group, ctx, channel, 0);
  return barrier(lane, algorithm, order, timeout);
}

/// As above until every thread of every member's grid has called it: the blocks of each grid meet, block 0 meets the
/// other members', and lets its grid go on. The launch must have said `waits`. Orders memory.
/// Returns ok, deadline, aborted; invalid_argument in a launch that did not say so, and as above. Source: seed 000,
/// 6.7.1.
template <class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE Status barrier(Grid<BlockGroup>& grid, const Context& ctx,
                                                 const CollectiveChannel& channel, BarrierAlgorithm algorithm) {
  if (const Status status = grid.sync(ctx); status != Status::ok) return status;
  // If block 0 fails, the team is aborted, which ends the other blocks' wait for it.
  if (grid.block_rank() == 0)
    if (const Status status = barrier(grid.block(), ctx, channel, algorithm); status != Status::ok) return status;
  return grid.sync(ctx);
}

}  // namespace beeline
