// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The words of barrier rounds: each member has one word at each other member, which holds the round that it has
/// reached, as the session counts rounds.

#include <cstdint>

#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/device/signal.hpp"

namespace beeline::detail {

/// One word of each member, and the state of the session that owns these words.
struct MemberWords {
  PaddedWord* words;
  SessionState* state;
};

/// Waits until `peer`'s word has reached `round`. One thread calls it.
BEELINE_HOST_DEVICE inline Status await_member(const Context& ctx, MemberWords members, std::uint32_t peer,
                                               std::uint64_t round, Order order, Timeout timeout) {
  return await_word(ctx, SessionWait{peer, Compare::greater_equal, members.state, round}, timeout,
                    SystemAtomic<std::uint64_t>(members.words[peer].value), order,
                    [round](std::uint64_t observed) { return has_reached(observed, round); });
}

/// Waits until all members' words have reached `round`.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status await_members(Group group, const Context& ctx, MemberWords members,
                                                      std::uint64_t round, Order order, Timeout timeout) {
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = group.thread_rank(); peer < ctx.size && status == Status::ok; peer += group.size())
    if (peer != ctx.rank) status = await_member(ctx, members, peer, round, order, timeout);
  return agree(group, status);
}

/// Waits until all members have left the round before `last`, which this member has left (see `has_left`). Orders
/// memory.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status await_leaving(Group group, const Context& ctx, MemberWords members,
                                                      std::uint64_t last, std::uint32_t signatures, Timeout timeout) {
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = group.thread_rank(); peer < ctx.size && status == Status::ok; peer += group.size()) {
    if (peer == ctx.rank) continue;
    status = await_word(ctx, SessionWait{peer, Compare::greater_equal, members.state, last - one_round}, timeout,
                        SystemAtomic<std::uint64_t>(members.words[peer].value), Order::memory,
                        [=](std::uint64_t observed) { return has_left(observed, last, signatures); });
  }
  return agree(group, status);
}

/// Sets this member's word on `peer` to `round`. One thread calls it.
BEELINE_HOST_DEVICE inline void tell_member(const Context& ctx, MemberWords members, std::uint32_t peer,
                                            std::uint64_t round, Order order) {
  store_signal(ctx.translate(&members.words[ctx.rank].value, peer), round, order);
}

/// Sets this member's word on every other member to `round`.
template <class Group>
BEELINE_HOST_DEVICE void tell_members(const Group& group, const Context& ctx, MemberWords members, std::uint64_t round,
                                      Order order) {
  for (std::uint32_t peer = group.thread_rank(); peer < ctx.size; peer += group.size())
    if (peer != ctx.rank) tell_member(ctx, members, peer, round, order);
}

/// All members signal member 0, whose threads poll for one member each; then member 0 signals all members.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status meet_flat(Group group, const Context& ctx, MemberWords members,
                                                  std::uint64_t round, Order order, Timeout timeout) {
  if (ctx.rank == 0) {
    const Status status = await_members(group, ctx, members, round, order, timeout);
    if (status == Status::ok) tell_members(group, ctx, members, round, order);
    return status;
  }
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    tell_member(ctx, members, 0, round, order);
    status = await_member(ctx, members, 0, round, order, timeout);
  }
  return agree(group, status);
}

/// In step k, signals the member 2^k after this member, and waits for the member 2^k before it. Two members communicate
/// in one step only, so one word for each pair suffices. A call that continues after a time-out repeats its signals.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status meet_by_dissemination(Group group, const Context& ctx, MemberWords members,
                                                              std::uint64_t round, Order order, Timeout timeout) {
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (std::uint32_t distance = 1; group.thread_rank() == 0 && distance < ctx.size && status == Status::ok;
       distance *= 2) {
    const std::uint32_t behind = (ctx.rank + distance) % ctx.size, before = (ctx.rank + ctx.size - distance) % ctx.size;
    tell_member(ctx, members, behind, round, order);
    status = await_member(ctx, members, before, round, order, timeout);
  }
  return agree(group, status);
}

}  // namespace beeline::detail
