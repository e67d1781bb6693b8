// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce: every member gets the combination of all members' vectors, with the same bits.

#include "beeline/collectives/impl/allreduce_packets.hpp"
#include "beeline/collectives/impl/call_check.hpp"
#include "beeline/collectives/impl/reduce_by.hpp"
#include "beeline/collectives/impl/session_chunks.hpp"
#include "beeline/collectives/session.hpp"
#include "beeline/selection/preferences.hpp"

namespace beeline {

namespace detail {

inline constexpr Algorithms allreduces_in_packets = algorithms_where(
    algorithms_of(Operation::allreduce, Control::device),
    [](const AlgorithmInfo& info) { return info.protocol == Protocol::ll || info.protocol == Protocol::ll128; });

/// All-reduce; see `allreduce` below. `known`: the only algorithm for which the kernel has code; `automatic`: all.
/// `members`: size of the team, for which LL128 has special code; 0: any size.
template <Algorithm known = Algorithm::automatic, std::uint32_t members = 0, class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status run_allreduce(Session<Group>& session,
                                                                      const AllreduceCall<T>& call,
                                                                      const SessionCall& how) {
  const bool is_chosen = known == Algorithm::automatic && how.algorithm == Algorithm::automatic;
  const Timeout timeout = how.timeout;
  // All sessions make the same choice, by the length of the first slice, which is the longest.
  const std::size_t longest = part_of(call.count, call.call.slices, 0, elements_in_16<T>).count;
  Algorithm algorithm =
      is_chosen ? choose_in_kernel<Operation::allreduce>(session.context(), longest * sizeof(T)) : how.algorithm;
  if (is_chosen && longest < session.context().size) algorithm = Algorithm::ll_one_shot;  // no work to share
  const auto in_packets = [&]<Algorithm one>() {
    constexpr AlgorithmInfo info = info_of(one);
    // If the choice is automatic, algorithms that are never chosen are not compiled. For host ranks, algorithms of GPUs
    // only are not compiled.
    constexpr bool may_be_chosen = contains(selection::chosen_in_kernels(Operation::allreduce), one);
    if constexpr (executor == DeviceKind::gpu || info.protocol == Protocol::ll)
      if (!is_chosen || may_be_chosen)
        return allreduce_packets<ScheduleOf<info.schedule>, ProtocolOf<info.protocol>, members>(session, call, timeout);
    return Status::invalid_argument;
  };
  constexpr Algorithms compiled =
      allreduces_in_packets & (known == Algorithm::automatic ? ~Algorithms{0} : set_of({known}));
  if constexpr (compiled != 0)
    if (contains(compiled, algorithm)) return with_member<compiled>(algorithm, in_packets);
  if (algorithm == Algorithm::two_shot) {
    if (session.context().mixed) return Status::invalid_argument;
    return allreduce_two_shot(session, call, timeout);
  }
  if constexpr (known == Algorithm::automatic)
    if (!is_chosen)
      return reduce_by(
          session,
          ReductionPlan<T>{call.call, call.destination, call.source, call.count}.slice(call.slice, call.call.slices),
          how);
  return Status::invalid_argument;
}

}  // namespace detail

/// Combines `count` elements of every member; every member gets the result.
///   source       [count] any local address, unchanged until the call has ended with ok
///   destination  [count] any local address; may be `source`; otherwise the two must not overlap
/// Every thread of the session calls it, on every member with the same type, count, reduction and algorithm. Blocking:
/// after ok the result is visible to the group, and `source` may change. The call orders no other memory accesses
/// between members. A call with 0 elements is a barrier.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that this team cannot use (teams with GPU
/// ranks and host ranks have only algorithms in packets, and teams with members on several nodes only `automatic`), or
/// if members make different calls: in this case the team is aborted, and the host's error names the calls of all
/// members. Source: seed 000, 6.8; MPI 4.0, 6.9.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce(Session<Group>& session, T* destination,
                                                                  const T* source, std::size_t count,
                                                                  Reduction reduction, const SessionCall& how = {}) {
  if (!session.exists()) return Status::invalid_argument;
  const CallDescription call{.operation = Operation::allreduce,
                             .element = detail::mark_of<T>(),
                             .reduction = reduction,
                             .algorithm = how.algorithm,
                             .slices = session.slices(),
                             .count = count};
  if (session.spans_nodes()) [[unlikely]]
    return detail::call_across(session, detail::ReductionPlan<T>{call, destination, source, count}, how);
  if (count == 0) return detail::empty_call(session, call, how.timeout);
  return detail::run_allreduce(session, detail::AllreduceCall<T>{call, destination, source, count, session.slice()},
                               how);
}

}  // namespace beeline
