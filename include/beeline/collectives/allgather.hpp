// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-gather: every member gets all members' vectors.

#include "beeline/collectives/movement.hpp"

namespace beeline {

namespace detail {

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE MovementPlan allgather_plan(T* destination, const T* source, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return {.operation = CollectiveOperation::allgather,
          .element = mark_of<T>(),
          .destination = reinterpret_cast<std::byte*>(destination),
          .source = reinterpret_cast<const std::byte*>(source),
          .bytes = count * sizeof(T),
          .send_step = 0,
          .receive_step = count * sizeof(T),
          .sender = no_peer,
          .receiver = no_peer};
}

}  // namespace detail

/// Copies every member's vector to all, by rank.
///   source       [count] any local address
///   destination  [members, count] any local address; `source` may be this member's part of it, otherwise the two do
///                not overlap
/// Every thread of the session calls it, on every member with the same count and algorithm.
/// Blocking: with ok the result is visible to the group, and `source` may change. Nothing else is ordered between
/// members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that does not work here (in teams of both
/// kinds of rank only packets).
/// Source: MPI 4.0, 6.7.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status allgather(Session<Group>& session, T* destination, const T* source,
                                                   std::size_t count, const SessionCall& how = {}) {
  return detail::move_slice(session, detail::allgather_plan(destination, source, count), how);
}

}  // namespace beeline
