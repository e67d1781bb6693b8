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
/// Every thread of the session calls it, on every member with the same count, reduction and algorithm.
/// Blocking: with ok the result is visible to the group, and `source` may change. Nothing else is ordered between
/// members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that it does not have here (in teams of
/// both kinds of rank only packets). Source: MPI 4.0, 6.10; seed 000, 6.8.3.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_scatter(Session<Group>& session, T* destination, const T* source,
                                                        std::size_t count, Reduction reduction,
                                                        const SessionCall& how = {}) {
  return detail::reduce_slice(
      session, detail::ReductionPlan<T>{destination, source, count, reduction, no_peer, true, count}, how);
}

}  // namespace beeline
