// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reduce, reduce-scatter, and all-reduce by the algorithms of seed 000.

#include "beeline/collectives/impl/call_check.hpp"
#include "beeline/collectives/impl/protocol/bulk.hpp"
#include "beeline/collectives/impl/schedule/reduce_in_place.hpp"
#include "beeline/collectives/impl/schedule/reduce_packets.hpp"
#include "beeline/collectives/impl/schedule/rooted_lines.hpp"
#include "beeline/collectives/impl/schedule/tree.hpp"
#include "beeline/collectives/impl/session_chunks.hpp"
#include "beeline/collectives/session.hpp"
#include "beeline/selection/preferences.hpp"

namespace beeline::detail {

/// Whether kernels have the operation, a reduction, with this algorithm.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool kernels_have(Operation operation, Algorithm algorithm) {
  constexpr std::uint32_t of_reduce = algorithms_of(Operation::reduce, Control::device),
                          of_allreduce = algorithms_of(Operation::allreduce, Control::device),
                          of_reduce_scatter = algorithms_of(Operation::reduce_scatter, Control::device);
  const std::uint32_t all = operation == Operation::reduce      ? of_reduce
                            : operation == Operation::allreduce ? of_allreduce
                                                                : of_reduce_scatter;
  const auto number = static_cast<std::uint32_t>(algorithm);
  return number < algorithms && (all >> number & 1u) != 0;
}

/// A reduction by the algorithm in `how`. Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm
/// that the reduction does not have.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_by(Session<Group>& session, const ReductionPlan<T>& plan,
                                                                  const SessionCall& how) {
  const Context& ctx = session.context();
  if (plan.count == 0) return Status::ok;
  if (!kernels_have(plan.call.operation, how.algorithm)) return Status::invalid_argument;
  if (how.algorithm == Algorithm::ll || (how.algorithm == Algorithm::ll128 && ctx.size == 1))
    return reduce_packets<LL>(session, plan, how.timeout);
  if constexpr (executor == DeviceKind::gpu)
    if (how.algorithm == Algorithm::ll128) return reduce_in_lines(session, plan, how.timeout);
  return with_stores(session, how, how.algorithm, [&](auto& stores) {
    if (const Status status = session.begin(plan.call); status != Status::ok) return status;
    if constexpr (std::remove_reference_t<decltype(stores)>::by_threads) {
      if (how.algorithm == Algorithm::read && plan.scatters()) return reduce_scatter_read(session, plan, how.timeout);
      if (how.algorithm == Algorithm::two_shot) return reduce_two_shot(session, plan, how.timeout);
      if (how.algorithm == Algorithm::tree && ctx.size > 1) return reduce_by_tree(session, plan, stores, how.timeout);
    }
    return reduce_collected(session, plan, stores, how.algorithm, how.timeout);
  });
}

/// Reduces the session's slice of a whole call of any count.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_slice(Session<Group>& session,
                                                                     const ReductionPlan<T>& plan, SessionCall how) {
  if (!session.exists()) return Status::invalid_argument;
  if (const Status status = check_root(session, plan.call); status != Status::ok) return status;
  if (session.spans_nodes()) [[unlikely]]
    return call_across(session, plan, how);
  if (plan.count == 0) return empty_call(session, plan.call, how.timeout);
  const ReductionPlan<T> mine = plan.slice(session.slice(), session.slices());
  if (how.algorithm == Algorithm::automatic)
    how.algorithm = plan.scatters()
                        ? choose_in_kernel<Operation::reduce_scatter>(session.context(), mine.count * sizeof(T))
                        : choose_in_kernel<Operation::reduce>(session.context(), mine.count * sizeof(T));
  return reduce_by(session, mine, how);
}

}  // namespace beeline::detail
