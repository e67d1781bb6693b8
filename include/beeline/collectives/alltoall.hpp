// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-to-all: every member sends a part of its vector to each, of one length or of lengths of their own.

#include "beeline/collectives/movement.hpp"

namespace beeline {

namespace detail {

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE MovementPlan alltoall_plan(T* destination, const T* source, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return {.operation = CollectiveOperation::alltoall,
          .element = mark_of<T>(),
          .destination = reinterpret_cast<std::byte*>(destination),
          .source = reinterpret_cast<const std::byte*>(source),
          .bytes = count * sizeof(T),
          .send_step = count * sizeof(T),
          .receive_step = count * sizeof(T),
          .sender = no_peer,
          .receiver = no_peer};
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE MovementPlan alltoallv_plan(T* destination, const T* source,
                                                              const PieceTable& pieces) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return {.operation = CollectiveOperation::alltoallv,
          .element = mark_of<T>(),
          .destination = reinterpret_cast<std::byte*>(destination),
          .source = reinterpret_cast<const std::byte*>(source),
          .bytes = 0,
          .send_step = 0,
          .receive_step = 0,
          .sender = no_peer,
          .receiver = no_peer,
          .table = pieces,
          .element_bytes = sizeof(T)};
}

}  // namespace detail

/// Copies part `j` of member `i`'s vector to part `i` of member `j`'s.
///   source       [members, count] any local address
///   destination  [members, count] any local address; the two do not overlap
/// Every thread of the session calls it, on every member with the same count and algorithm.
/// Blocking: with ok the result is visible to the group, and `source` may change. Nothing else is ordered between
/// members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that does not work here (in teams of both
/// kinds of rank only packets).
/// Source: MPI 4.0, 6.8.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status alltoall(Session<Group>& session, T* destination, const T* source,
                                                  std::size_t count, const SessionCall& how = {}) {
  return detail::move_slice(session, detail::alltoall_plan(destination, source, count), how);
}

/// As `alltoall`, with pieces of any lengths at any places: `pieces.send_counts[j]` elements from
/// `source + pieces.send_offsets[j]` on go to member `j`; `pieces.receive_counts[i]` from member `i` go to
/// `destination + pieces.receive_offsets[i]`.
///   source, destination  any local address; what is received overlaps nothing
/// The members compare first: where one does not expect what another sends, nothing goes from that one to it (other
/// pieces may), both get invalid_argument, or aborted if they hear of each other's end sooner, and the team ends with
/// an error that names both and their lengths. Otherwise as `alltoall`, with the same algorithm on every member.
/// Source: MPI 4.0, 6.8, MPI_Alltoallv.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status alltoallv(Session<Group>& session, T* destination, const T* source,
                                                   const PieceTable& pieces, const SessionCall& how = {}) {
  return detail::move_slice(session, detail::alltoallv_plan(destination, source, pieces), how);
}

}  // namespace beeline
