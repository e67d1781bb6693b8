// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Scatter: each member gets its part of the root's vector.

#include "beeline/collectives/exchange.hpp"

namespace beeline {

namespace detail {

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE ExchangePlan scatter_plan(T* destination, const T* source, std::size_t count,
                                                            std::uint32_t root) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return {.operation = CollectiveOperation::scatter,
          .element = mark_of<T>(),
          .destination = reinterpret_cast<std::byte*>(destination),
          .source = reinterpret_cast<const std::byte*>(source),
          .bytes = count * sizeof(T),
          .send_step = count * sizeof(T),
          .receive_step = 0,
          .sender = root,
          .receiver = no_peer};
}

}  // namespace detail

/// Copies part `r` of the root's vector to member `r`.
///   source       [members, count] of the root, any local address; of others not looked at
///   destination  [count] any local address; the root's may be its part of `source`, otherwise the two do not overlap
/// Every thread of the lane's group calls it, on every member with the same count, root and algorithm.
/// Blocking: with ok the result is visible to the group, and `source` may change. Nothing else is ordered between
/// members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that does not work here (in teams of both
/// kinds of rank only packets), and for a root that is no member (refused: see access.hpp).
/// Source: MPI 4.0, 6.6.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status scatter(Lane<Group>& lane, T* destination, const T* source, std::size_t count,
                                                 std::uint32_t root, const LaneCall& how = {}) {
  return detail::exchange(lane, detail::scatter_plan(destination, source, count, root), how);
}

/// As above by one group of each member, on lane 0: nobody else uses the channel meanwhile.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status scatter(const Group& group, const Context& ctx,
                                                 const CollectiveChannel& channel, T* destination, const T* source,
                                                 std::size_t count, std::uint32_t root, const LaneCall& how = {}) {
  return detail::exchange_by_group(group, ctx, channel, detail::scatter_plan(destination, source, count, root), how);
}

/// As above by a whole grid, of as many blocks on every member: each block moves a slice of every piece, on the lane of
/// its number. Returns each block the status of its slice; what others moved is visible after `grid.sync`, and until
/// then `source` does not change. After `timeout`, the blocks call again that got it.
template <class T, class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE Status scatter(const Grid<BlockGroup>& grid, const Context& ctx,
                                                 const CollectiveChannel& channel, T* destination, const T* source,
                                                 std::size_t count, std::uint32_t root, const LaneCall& how = {}) {
  return detail::exchange_by_grid(grid, ctx, channel, detail::scatter_plan(destination, source, count, root), how);
}

}  // namespace beeline
