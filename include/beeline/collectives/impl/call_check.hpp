// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What of a call is checked: its root always; in the checking mode the members compare, before each call, what they
/// are about to do.

#include <cstdint>

#include "beeline/collectives/operation.hpp"
#include "beeline/collectives/session.hpp"

namespace beeline::detail {

/// What differs, of lengths the one that this member sends, or that it expects; or a root that is no member.
enum class CallDifference : std::uint64_t { call, count, session_in_use, places, sent_length, expected_length, root };

/// The sequence of such a record: what differs, in its low byte; and in which operation, where the values do not say.
[[nodiscard]] constexpr CallDifference difference_in(std::uint64_t sequence) {
  return static_cast<CallDifference>(sequence & 0xff);
}
[[nodiscard]] constexpr Operation operation_in(std::uint64_t sequence) { return static_cast<Operation>(sequence >> 8); }

/// Records what this member is in and what another is in, and aborts the team: its calls no longer fit together.
BEELINE_COLD BEELINE_HOST_DEVICE inline void refuse_call(const Context& ctx, std::uint32_t peer,
                                                         CallDifference difference, std::uint64_t mine,
                                                         std::uint64_t theirs, Operation operation = Operation::none) {
  const auto sequence = static_cast<std::uint64_t>(difference) | static_cast<std::uint64_t>(operation) << 8;
  record_wait(ctx, Awaited{Operation::collective, peer, sequence, mine}, theirs, 0, Status::invalid_argument);
  raise_abort(ctx, ctx.own_world_rank);
}

/// `ok`, or `invalid_argument` after one thread of the group has refused the root. Every thread calls it.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status check_root(const Group& group, const Context& ctx, Operation operation,
                                                    std::uint32_t root) {
  if (root < ctx.size) [[likely]]
    return Status::ok;
  if (group.thread_rank() == 0) refuse_call(ctx, ctx.rank, CallDifference::root, ctx.size, root, operation);
  return Status::invalid_argument;
}

/// A round of packets in which all members say which call they begin. Does nothing on channels that do not check, and
/// in a call that goes on after a time-out. Ok when all agree; invalid_argument on every member otherwise: if two
/// differ, each of the others differs from one of them.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status compare_calls(Session<Group>& session, const CallSignature& call,
                                                       Timeout timeout) {
  if (!session.checks() || session.is_checked()) return Status::ok;
  const Context& ctx = session.context();
  const Group& group = session.group();
  const std::uint64_t mine[2] = {call.packed(), call.count};
  if (session.is_taken()) {
    if (group.thread_rank() == 0) refuse_call(ctx, ctx.rank, CallDifference::session_in_use, mine[0], 0);
    return Status::invalid_argument;
  }
  bool is_new = false;
  if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
  Status status = Status::ok;
  for (std::uint32_t peer = group.thread_rank(); is_new && peer < ctx.size; peer += group.size())
    for (unsigned k = 0; k < 2; ++k) session.send_word(peer, k, mine[k]);
  for (std::uint32_t peer = group.thread_rank(); peer < ctx.size && status == Status::ok; peer += group.size())
    for (unsigned k = 0; k < 2 && status == Status::ok; ++k) {
      std::uint64_t theirs[1] = {};
      status = session.receive_words(peer, k, theirs, timeout);
      if (status != Status::ok || theirs[0] == mine[k]) continue;
      refuse_call(ctx, peer, k == 0 ? CallDifference::call : CallDifference::count, mine[k], theirs[0], call.operation);
      status = Status::invalid_argument;
    }
  status = session.finish(status);
  if (status == Status::ok) session.set_checked(true);
  return status;
}

}  // namespace beeline::detail
