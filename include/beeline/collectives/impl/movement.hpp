// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collectives that move data, as one: rank i sends piece [i, j] to rank j, who puts it at a place of its own.
///
/// broadcast, scatter and gather have one sender or one receiver; of all-gather and all-to-all all members are both.
/// Four ways: `ll` (packets: any memory, no barrier; the only one in teams of both kinds of rank), `ll128` (packets of
/// 128 bytes: broadcast, all-gather and all-to-all between GPUs), `peer` (loads and stores of the calling threads) and
/// `bulk` (TMA). The latter two store where the piece is to lie, if that is in the heap of its rank on every member,
/// else through the channel's memory; by `peer`, what one sends from its heap the others fetch. Source: MPI 4.0,
/// chapter 6; seed 000, 6.8.2 and 6.8.3.

#include "beeline/collectives/impl/call_check.hpp"
#include "beeline/collectives/impl/protocol/bulk.hpp"
#include "beeline/collectives/impl/schedule/direct_varied.hpp"
#include "beeline/collectives/impl/schedule/rooted_lines.hpp"
#include "beeline/collectives/session.hpp"
#include "beeline/selection/preferences.hpp"

namespace beeline {

namespace detail {

/// Follows from what all members know.
[[nodiscard]] BEELINE_HOST_DEVICE inline Algorithm choose_movement(const Context& ctx, const MovementPlan& plan) {
  return plan.varies() ? choose_in_kernel<Operation::alltoallv>(ctx, 0)
                       : choose_in_kernel<Operation::alltoall>(ctx, plan.bytes);  // as of all that move
}

/// The session's slice of every piece, which `plan` has.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status move(Session<Group>& session, const MovementPlan& plan,
                                                             const SessionCall& how) {
  const Context& ctx = session.context();
  if (!plan.varies() && plan.bytes == 0) return Status::ok;
  const Algorithm algorithm = how.algorithm == Algorithm::automatic ? choose_movement(ctx, plan) : how.algorithm;
  if (algorithm == Algorithm::ll) return move_packets<LL>(session, plan, how.timeout);
  if constexpr (executor == DeviceKind::gpu)  // what is never chosen is not compiled where the choice is automatic
    if (how.algorithm == Algorithm::ll128) {
      if (plan.call.operation != Operation::broadcast) return move_packets<LL128>(session, plan, how.timeout);
      return ctx.size > 1 ? broadcast_in_lines(session, plan, how.timeout)
                          : move_packets<LL>(session, plan, how.timeout);
    }
  if (algorithm != Algorithm::peer && algorithm != Algorithm::bulk) return Status::invalid_argument;
  return with_stores(session, how, algorithm, [&](auto& stores) {
    if (const Status status = session.begin(plan.call); status != Status::ok) return status;
    return plan.varies() ? move_varied(session, plan, stores, how.timeout)
                         : move_direct(session, plan, stores, how.timeout);
  });
}

/// The same of the plan of a whole call, of any count.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status move_slice(Session<Group>& session, const MovementPlan& plan,
                                                                   const SessionCall& how) {
  if (!session.exists()) return Status::invalid_argument;
  if (const Status status = check_root(session, plan.call); status != Status::ok) return status;
  if (!plan.varies() && plan.bytes == 0) return empty_call(session, plan.call, how.timeout);
  return move(session, plan.slice(session.slice(), session.slices()), how);
}

}  // namespace detail

}  // namespace beeline
