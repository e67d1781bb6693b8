// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Broadcast: all members get the root's vector.

#include "beeline/collectives/exchange.hpp"

namespace beeline {

namespace detail {

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE ExchangePlan broadcast_plan(T* destination, const T* source, std::size_t count,
                                                              std::uint32_t root) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return {.operation = CollectiveOperation::broadcast,
          .element = mark_of<T>(),
          .destination = reinterpret_cast<std::byte*>(destination),
          .source = reinterpret_cast<const std::byte*>(source),
          .bytes = count * sizeof(T),
          .send_step = 0,
          .receive_step = 0,
          .sender = root,
          .receiver = no_peer};
}

}  // namespace detail

/// Copies `count` elements of `root` to every member.
///   source       [count] of the root, any local address; of others not looked at
///   destination  [count] any local address; at the root it may be `source`, otherwise the two do not overlap
/// Every thread of the lane's group calls it, on every member with the same count, root and algorithm.
/// Blocking: with ok the result is visible to the group, and `source` may change. Nothing else is ordered between
/// members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that does not work here (in teams of both
/// kinds of rank only packets), and for a root that is no member (refused: see access.hpp).
/// Source: MPI 4.0, 6.4.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status broadcast(Lane<Group>& lane, T* destination, const T* source,
                                                   std::size_t count, std::uint32_t root, const LaneCall& how = {}) {
  return detail::exchange(lane, detail::broadcast_plan(destination, source, count, root), how);
}

/// As above by one group of each member, on lane 0: nobody else uses the channel meanwhile.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status broadcast(const Group& group, const Context& ctx,
                                                   const CollectiveChannel& channel, T* destination, const T* source,
                                                   std::size_t count, std::uint32_t root, const LaneCall& how = {}) {
  return detail::exchange_by_group(group, ctx, channel, detail::broadcast_plan(destination, source, count, root), how);
}

/// As above by a whole grid, of as many blocks on every member: each block moves a slice of every piece, on the lane of
/// its number. Returns each block the status of its slice; what others moved is visible after `grid.sync`, and until
/// then `source` does not change. After `timeout`, the blocks call again that got it.
template <class T, class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE Status broadcast(const Grid<BlockGroup>& grid, const Context& ctx,
                                                   const CollectiveChannel& channel, T* destination, const T* source,
                                                   std::size_t count, std::uint32_t root, const LaneCall& how = {}) {
  return detail::exchange_by_grid(grid, ctx, channel, detail::broadcast_plan(destination, source, count, root), how);
}

}  // namespace beeline
