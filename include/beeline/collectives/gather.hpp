// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Gather: the root gets all members' vectors.

#include "beeline/collectives/exchange.hpp"

namespace beeline {

namespace detail {

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE ExchangePlan gather_plan(T* destination, const T* source, std::size_t count,
                                                           std::uint32_t root) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return {.operation = CollectiveOperation::gather,
          .element = mark_of<T>(),
          .destination = reinterpret_cast<std::byte*>(destination),
          .source = reinterpret_cast<const std::byte*>(source),
          .bytes = count * sizeof(T),
          .send_step = 0,
          .receive_step = count * sizeof(T),
          .sender = no_peer,
          .receiver = root};
}

}  // namespace detail

/// Copies every member's vector to the root, by rank.
///   source       [count] any local address
///   destination  [members, count] of the root, any local address; of others not looked at. The root's `source` may be
///                its part of it, otherwise the two do not overlap
/// Every thread of the lane's group calls it, on every member with the same count, root and algorithm.
/// Blocking: with ok the result is visible to the group, and `source` may change. Nothing else is ordered between
/// members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that does not work here (in teams of both
/// kinds of rank only packets), and for a root that is no member (refused: see access.hpp).
/// Source: MPI 4.0, 6.5.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status gather(Lane<Group>& lane, T* destination, const T* source, std::size_t count,
                                                std::uint32_t root, const LaneCall& how = {}) {
  return detail::exchange(lane, detail::gather_plan(destination, source, count, root), how);
}

/// As above by one group of each member, on lane 0: nobody else uses the channel meanwhile.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status gather(const Group& group, const Context& ctx,
                                                const CollectiveChannel& channel, T* destination, const T* source,
                                                std::size_t count, std::uint32_t root, const LaneCall& how = {}) {
  return detail::exchange_by_group(group, ctx, channel, detail::gather_plan(destination, source, count, root), how);
}

/// As above by a whole grid, of as many blocks on every member: each block moves a slice of every piece, on the lane of
/// its number. Returns each block the status of its slice; what others moved is visible after `grid.sync`, and until
/// then `source` does not change. After `timeout`, the blocks call again that got it.
template <class T, class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE Status gather(const Grid<BlockGroup>& grid, const Context& ctx,
                                                const CollectiveChannel& channel, T* destination, const T* source,
                                                std::size_t count, std::uint32_t root, const LaneCall& how = {}) {
  return detail::exchange_by_grid(grid, ctx, channel, detail::gather_plan(destination, source, count, root), how);
}

}  // namespace beeline
