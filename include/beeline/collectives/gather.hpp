// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Gather: the root gets all members' vectors.

#include "beeline/collectives/movement.hpp"

namespace beeline {

namespace detail {

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE MovementPlan gather_plan(T* destination, const T* source, std::size_t count,
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
/// Every thread of the session calls it, on every member with the same count, root and algorithm.
/// Blocking: with ok the result is visible to the group, and `source` may change. Nothing else is ordered between
/// members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that does not work here (in teams of both
/// kinds of rank only packets), and for a root that is no member (refused: see access.hpp).
/// Source: MPI 4.0, 6.5.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status gather(Session<Group>& session, T* destination, const T* source,
                                                std::size_t count, std::uint32_t root, const SessionCall& how = {}) {
  return detail::move_slice(session, detail::gather_plan(destination, source, count, root), how);
}

}  // namespace beeline
