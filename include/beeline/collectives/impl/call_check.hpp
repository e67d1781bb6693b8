// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks of a session's collectives before they begin, and calls with 0 elements.

#include "beeline/collectives/session.hpp"

namespace beeline::detail {

/// `ok`, or `invalid_argument` after one thread of the group has refused the call's root. Every thread calls it.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status check_root(const Session<Group>& session, const CallDescription& call) {
  const Context& ctx = session.context();
  if (!has_root(call.operation) || call.root < ctx.size) [[likely]]
    return Status::ok;
  if (session.group().thread_rank() == 0)
    refuse_call(ctx, {CallDifference::root,
                      ctx.rank,
                      {.packed = ctx.size, .count = static_cast<std::uint64_t>(call.operation)},
                      {.packed = call.root, .count = 0}});
  return Status::invalid_argument;
}

/// A call with 0 elements is a round without data, so that members whose call has elements detect the difference.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status empty_call(Session<Group>& session, const CallDescription& call,
                                                    Timeout timeout) {
  if (const Status status = session.begin(call); status != Status::ok) return status;
  return session.barrier(Order::memory, timeout);
}

}  // namespace beeline::detail
