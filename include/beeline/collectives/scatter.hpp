// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Scatter: each member gets its part of the root's vector.

#include "beeline/collectives/movement.hpp"

namespace beeline {

namespace detail {

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE MovementPlan scatter_plan(T* destination, const T* source, std::size_t count,
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
/// Every thread of the session calls it, on every member with the same count, root and algorithm.
/// Blocking: with ok the result is visible to the group, and `source` may change. Nothing else is ordered between
/// members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that does not work here (in teams of both
/// kinds of rank only packets), and for a root that is no member (refused: see access.hpp).
/// Source: MPI 4.0, 6.6.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status scatter(Session<Group>& session, T* destination, const T* source,
                                                 std::size_t count, std::uint32_t root, const SessionCall& how = {}) {
  return detail::move_slice(session, detail::scatter_plan(destination, source, count, root), how);
}

}  // namespace beeline
