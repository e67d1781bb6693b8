// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reduce: the root gets the combination of all members' vectors. Reduce-scatter: each member gets its part of the
/// combination.

#include "beeline/collectives/impl/reduce_by.hpp"

namespace beeline {

/// Combines `count` elements of every member on the root.
///   source       [count] any local address
///   destination  [count] at the root, any local address; it may be `source`, otherwise the two must not overlap;
///                ignored at other members
///   how          ll, ll128 (between GPUs), two_shot, read, gather, alltoall_gather or tree
/// Every thread of the session calls it, on every member with the same count, reduction, root and algorithm.
/// Blocking: after ok the result is visible to the group, and `source` may change. The call orders no other memory
/// accesses between members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that this team cannot use (teams with GPU
/// ranks and host ranks have only algorithms in packets, teams with members on several nodes only `automatic`), and for
/// a root that is not a member (refused: see access.hpp). Source: seed 000, 6.8; MPI 4.0, 6.9.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce(Session<Group>& session, T* destination, const T* source,
                                                               std::size_t count, Reduction reduction,
                                                               std::uint32_t root, const SessionCall& how = {}) {
  const CallDescription call{.operation = Operation::reduce,
                             .element = detail::mark_of<T>(),
                             .reduction = reduction,
                             .algorithm = how.algorithm,
                             .root = root,
                             .count = count};
  return detail::reduce_slice(session, detail::ReductionPlan<T>{call, destination, source, count}, how);
}

/// Combines part `r` of all members' vectors on member `r`.
///   source       [members, count] any local address; other members read it directly if it is symmetric
///   destination  [count] any local address; it may be this member's part of `source`; otherwise the two must not
///                overlap
///   how          ll, read, peer or bulk
/// Every thread of the session calls it, on every member with the same count, reduction and algorithm.
/// Blocking: after ok the result is visible to the group, and `source` may change. The call orders no other memory
/// accesses between members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that this team cannot use (teams with GPU
/// ranks and host ranks have only algorithms in packets, teams with members on several nodes only `automatic`). Source:
/// MPI 4.0, 6.10; seed 000, 6.8.3.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_scatter(Session<Group>& session, T* destination,
                                                                       const T* source, std::size_t count,
                                                                       Reduction reduction,
                                                                       const SessionCall& how = {}) {
  const CallDescription call{.operation = Operation::reduce_scatter,
                             .element = detail::mark_of<T>(),
                             .reduction = reduction,
                             .algorithm = how.algorithm,
                             .count = count};
  return detail::reduce_slice(session, detail::ReductionPlan<T>{call, destination, source, count, count}, how);
}

}  // namespace beeline
