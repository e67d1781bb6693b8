// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All collectives that move data, in one form: rank i sends piece [i, j] to rank j, which stores it at an offset of
/// its own.
///
/// broadcast, scatter and gather have one sender or one receiver; in all-gather and all-to-all all members are senders
/// and receivers. There are four algorithms: `ll` (packets: any memory, no barrier; the only algorithm in teams with
/// GPU ranks and host ranks), `ll128` (packets of 128 bytes: broadcast, all-gather and all-to-all between GPUs), `peer`
/// (loads and stores of the calling threads) and `bulk` (TMA). `peer` and `bulk` store pieces directly into their
/// destinations if these are in the heap on every member, otherwise through the channel's memory; with `peer`,
/// receivers read pieces of a single sender from its heap. Source: MPI 4.0, chapter 6; seed 000, 6.8.2 and 6.8.3.

#include "beeline/collectives/impl/call_check.hpp"
#include "beeline/collectives/impl/protocol/bulk.hpp"
#include "beeline/collectives/impl/schedule/direct_varied.hpp"
#include "beeline/collectives/impl/schedule/rooted_lines.hpp"
#include "beeline/collectives/impl/session_chunks.hpp"
#include "beeline/collectives/session.hpp"
#include "beeline/selection/preferences.hpp"

namespace beeline {

namespace detail {

/// The automatic choice, which depends only on data that are the same on all members.
[[nodiscard]] BEELINE_HOST_DEVICE inline Algorithm choose_movement(const Context& ctx, const MovementPlan& plan) {
  return plan.varies() ? choose_in_kernel<Operation::alltoallv>(ctx, 0)
                       : choose_in_kernel<Operation::alltoall>(ctx, plan.bytes);  // all operations that move data have
                                                                                  // the same rows
}

/// Moves the session's slice of every piece; `plan` describes this slice.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status move(Session<Group>& session, const MovementPlan& plan,
                                                             const SessionCall& how) {
  const Context& ctx = session.context();
  if (!plan.varies() && plan.bytes == 0) return Status::ok;
  const Algorithm algorithm = how.algorithm == Algorithm::automatic ? choose_movement(ctx, plan) : how.algorithm;
  if (algorithm == Algorithm::ll) return move_packets<LL>(session, plan, how.timeout);
  if constexpr (executor == DeviceKind::gpu)  // algorithms that are never chosen are not compiled if the choice is
                                              // automatic
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

/// As `move`, for the plan of a whole call of any count.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status move_slice(Session<Group>& session, const MovementPlan& plan,
                                                                   const SessionCall& how) {
  if (!session.exists()) return Status::invalid_argument;
  if (const Status status = check_root(session, plan.call); status != Status::ok) return status;
  if (session.spans_nodes()) [[unlikely]]
    return call_across(session, plan, how);
  if (!plan.varies() && plan.bytes == 0) return empty_call(session, plan.call, how.timeout);
  return move(session, plan.slice(session.slice(), session.slices()), how);
}

}  // namespace detail

}  // namespace beeline
