// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reduce-scatter: each member gets its part of the combination of all members' vectors.

#include "beeline/collectives/reduce_by.hpp"

namespace beeline {

/// Combines part `r` of all members' vectors on member `r`.
///   source       [members, count] any local address; read from others where all lie at the same place of their slots
///   destination  [count] any local address; it may be this member's part of `source`, else the two do not overlap
///   how          packets, read, peer or bulk
/// Every thread of the lane's group calls it, on every member with the same count, reduction and algorithm.
/// Blocking: with ok the result is visible to the group, and `source` may change. Nothing else is ordered between
/// members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that it does not have here (in teams of
/// both kinds of rank only packets). Source: MPI 4.0, 6.10; seed 000, 6.8.3.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_scatter(Lane<Group>& lane, T* destination, const T* source,
                                                        std::size_t count, Reduction reduction,
                                                        const LaneCall& how = {}) {
  return detail::reduce_on_lane(
      lane, detail::ReductionPlan<T>{destination, source, count, reduction, no_peer, true, count}, how);
}

/// As above by one group of each member, on lane 0: nobody else uses the channel meanwhile.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_scatter(const Group& group, const Context& ctx,
                                                        const CollectiveChannel& channel, T* destination,
                                                        const T* source, std::size_t count, Reduction reduction,
                                                        const LaneCall& how = {}) {
  Lane<Group> lane(group, ctx, channel, 0);
  return reduce_scatter(lane, destination, source, count, reduction, how);
}

/// As above by a whole grid, of as many blocks on every member: each block takes a slice, on the lane of its number.
/// Returns each block the status of its slice, whose result its threads see; those of other blocks after `grid.sync`.
/// After `timeout`, the blocks call again that got it.
template <class T, class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_scatter(const Grid<BlockGroup>& grid, const Context& ctx,
                                                        const CollectiveChannel& channel, T* destination,
                                                        const T* source, std::size_t count, Reduction reduction,
                                                        const LaneCall& how = {}) {
  return detail::reduce_by_grid(
      grid, ctx, channel, detail::ReductionPlan<T>{destination, source, count, reduction, no_peer, true, count}, how);
}

}  // namespace beeline
