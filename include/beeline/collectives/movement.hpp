// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The collectives that move data: broadcast, scatter, gather, all-gather, all-to-all(v).
///
/// Every thread of the session calls them, with the same type, count, root and algorithm on every member. If the calls
/// of two members differ, the team is aborted with an error that names both calls. The calls block: after ok the result
/// is visible to the group, and `source` may change. They order no other memory accesses between members. A call with 0
/// elements is a barrier. They return ok, timeout, deadline, aborted; invalid_argument for an algorithm that this team
/// cannot use (teams with GPU ranks and host ranks have only algorithms in packets, teams with members on several nodes
/// only `automatic`), or for a root that is not a member (refused: see access.hpp).

#include "beeline/collectives/impl/movement.hpp"

namespace beeline {

/// Makes the call `operation` of this file; any except `alltoallv`.
///   root  only for operations that have a root
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status move_elements(Session<Group>& session, Operation operation, T* destination,
                                                       const T* source, std::size_t count, const SessionCall& how,
                                                       std::uint32_t root = no_peer) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  const CallDescription call{.operation = operation,
                             .element = detail::mark_of<T>(),
                             .algorithm = how.algorithm,
                             .root = root,
                             .count = count};
  return detail::move_slice(session, detail::plan_of(call, destination, source, count * sizeof(T)), how);
}

/// Copies `count` elements of `root` to every member.
///   source       [count] at the root, any local address; ignored at other members
///   destination  [count] any local address; at the root it may be `source`; otherwise the two must not overlap
/// Source: MPI 4.0, 6.4.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status broadcast(Session<Group>& session, T* destination, const T* source,
                                                   std::size_t count, std::uint32_t root, const SessionCall& how = {}) {
  return move_elements(session, Operation::broadcast, destination, source, count, how, root);
}

/// Copies part `r` of the root's vector to member `r`.
///   source       [members, count] at the root, any local address; ignored at other members
///   destination  [count] any local address; the root's may be its part of `source`; otherwise the two must not overlap
/// Source: MPI 4.0, 6.6.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status scatter(Session<Group>& session, T* destination, const T* source,
                                                 std::size_t count, std::uint32_t root, const SessionCall& how = {}) {
  return move_elements(session, Operation::scatter, destination, source, count, how, root);
}

/// Copies every member's vector to the root, in the order of ranks.
///   source       [count] any local address
///   destination  [members, count] at the root, any local address; ignored at other members. The root's `source` may be
///                its part of `destination`; otherwise the two must not overlap
/// Source: MPI 4.0, 6.5.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status gather(Session<Group>& session, T* destination, const T* source,
                                                std::size_t count, std::uint32_t root, const SessionCall& how = {}) {
  return move_elements(session, Operation::gather, destination, source, count, how, root);
}

/// Copies every member's vector to all members, in the order of ranks.
///   source       [count] any local address
///   destination  [members, count] any local address; `source` may be this member's part of `destination`; otherwise
///                the two must not overlap
/// Source: MPI 4.0, 6.7.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status allgather(Session<Group>& session, T* destination, const T* source,
                                                   std::size_t count, const SessionCall& how = {}) {
  return move_elements(session, Operation::allgather, destination, source, count, how);
}

/// Copies part `j` of member `i`'s vector to part `i` of member `j`'s vector.
///   source       [members, count] any local address
///   destination  [members, count] any local address; the two must not overlap
/// Source: MPI 4.0, 6.8.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status alltoall(Session<Group>& session, T* destination, const T* source,
                                                  std::size_t count, const SessionCall& how = {}) {
  return move_elements(session, Operation::alltoall, destination, source, count, how);
}

/// All-to-all with pieces of any lengths and positions. `pieces.send_counts[j]` elements, starting at `source +
/// pieces.send_offsets[j]`, go to member `j`. `pieces.receive_counts[i]` elements from member `i` go to `destination +
/// pieces.receive_offsets[i]`.
///   source, destination  any local address; received pieces must not overlap each other or `source`
/// The members first compare the lengths. If a receiver expects another length than its sender sends, this piece is not
/// moved (other pieces may be). Both members get invalid_argument, or aborted if they learn of the abort first, and the
/// team is aborted with an error that names both members and both lengths.
/// Source: MPI 4.0, 6.8, MPI_Alltoallv.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status alltoallv(Session<Group>& session, T* destination,
                                                                  const T* source, const PieceTable& pieces,
                                                                  const SessionCall& how = {}) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  const CallDescription call{
      .operation = Operation::alltoallv, .element = detail::mark_of<T>(), .algorithm = how.algorithm};
  auto plan = detail::plan_of(call, destination, source, 0);
  plan.table = pieces, plan.element_bytes = sizeof(T);
  return detail::move_slice(session, plan, how);
}

}  // namespace beeline
