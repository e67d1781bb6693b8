// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Waits of a session; a long wait also compares the calls of the members.
///
/// Each member publishes its calls to the other members in its session's state. A call is two pairs of packets: 8 bytes
/// of the description, then the count, each with the number of the call's first round as flag. Members that make the
/// same calls number them equally. A reader needs no fence: a pair whose flags are the number of a call is complete,
/// and belongs to that call.
///
/// A member that only sends in a round does not wait for other members: it may begin the second call after a call that
/// another member has not yet left. It gets no further, since the wait before its next round compares signatures
/// (session.hpp). So the first call in which two members differ is still among the last `shown_calls` of both.
///
///   rank 0   call 5: broadcast, root 0   call 6: allreduce  ──── waits for rank 1 ───┐ 1 ms: its call 5 is another
///   rank 1   call 5: broadcast, root 1   call 6: allreduce  ──── waits for rank 0 ───┘ -> both recorded, team aborted

#include <cstdint>

#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/operation.hpp"
#include "beeline/device/packets.hpp"

namespace beeline::detail {

/// The difference between the calls of two members, or another fault of a call. `sent_length`, `expected_length`: the
/// length that this member sends or expects. `root`: the root is not a member. `order`: data belong to an earlier or
/// later call. A record has this value in place of the comparison.
enum class CallDifference : std::uint16_t { call, session_in_use, places, sent_length, expected_length, root, order };

/// A call in a record: `CallDescription::packed`, and the count.
struct CallWords {
  std::uint64_t packed, count;
};

/// Two calls, or two values of calls, that differ but must be equal.
struct DifferingCalls {
  CallDifference what;
  std::uint32_t peer;
  CallWords mine, theirs;
};

/// Records a difference, and aborts the team. Compiled out of line.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status refuse_call(const Context& ctx, DifferingCalls calls) {
  const Awaited awaited{Operation::collective, calls.peer, calls.mine.count, calls.mine.packed,
                        static_cast<Compare>(calls.what)};
  return give_up(ctx, awaited, calls.theirs.packed, calls.theirs.count, Status::invalid_argument);
}

/// The signature in a round's number.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t signature_of(std::uint64_t round) {
  return static_cast<std::uint32_t>(round) & ((1u << signature_bits) - 1);
}

/// The increment of a round's number. The bits below it are the signature of the round's call.
inline constexpr std::uint64_t one_round = std::uint64_t{1} << signature_bits;
/// A round's number without the signature.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t unsigned_round(std::uint64_t round) {
  return round & ~(one_round - 1);
}

/// Whether a member whose word is `observed` has reached `round`. A member in the same round of another call has not
/// reached it. A member that is ahead has compared this member's signature.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool has_reached(std::uint64_t observed, std::uint64_t round) {
  const std::uint32_t differing = static_cast<std::uint32_t>(observed) ^ static_cast<std::uint32_t>(round);
  return observed >= round && differing - 1 >= static_cast<std::uint32_t>(one_round - 1);  // no bits differ, or not
                                                                                           // only bits of the signature
}

/// Whether a member that has left `observed` has left the round before `last`, the last round that this member has
/// left. False for a member that has left one of these two rounds of another call: see `has_reached`.
///   signatures  signature of round `last`, and in the high bits that of the round before
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool has_left(std::uint64_t observed, std::uint64_t last,
                                                          std::uint32_t signatures) {
  const std::uint64_t left = observed >> signature_bits, mine = last >> signature_bits;
  if (left > mine) return true;
  if (left == mine) return signature_of(observed) == signature_of(signatures);
  return left + 1 == mine && signature_of(observed) == signatures >> signature_bits;
}

BEELINE_HOST_DEVICE inline void show_call(SessionState* state, std::uint32_t number, const CallDescription& call) {
  machine::PacketPair* const cell = state->calls[number % shown_calls];
  machine::store_packets(cell, packets_of(call.packed(), number));
  machine::store_packets(cell + 1, packets_of(call.count, number));
}
/// A call that a member has published.
[[nodiscard]] BEELINE_HOST_DEVICE inline CallWords words_of(const SessionState* state, std::uint32_t number) {
  const machine::PacketPair* const cell = state->calls[number % shown_calls];
  return {payload_of(machine::load_packets(cell)), payload_of(machine::load_packets(cell + 1))};
}
/// The number of the call in a cell.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t number_in(const SessionState* state, std::uint32_t cell) {
  return static_cast<std::uint32_t>(machine::load_packets(state->calls[cell]).low >> 32);
}
/// Whether call `a` comes before call `b`; numbers wrap.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}
/// Whether call `number` is complete in both states, and differs.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool differ(const SessionState* a, const SessionState* b,
                                                     std::uint32_t number) {
  bool are_whole = true, are_same = true;
  BEELINE_NO_UNROLL
  for (std::uint32_t i = 0; i < 2; ++i) {
    const machine::PacketPair mine = machine::load_packets(&a->calls[number % shown_calls][i]),
                              other = machine::load_packets(&b->calls[number % shown_calls][i]);
    are_whole = are_whole && has_flags(mine, number) && has_flags(other, number);
    are_same = are_same && mine.low == other.low && mine.high == other.high;
  }
  return are_whole && !are_same;
}
/// Finds the first of the published calls that differs between two members. Returns whether there is one.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool find_difference(const SessionState* mine, const SessionState* theirs,
                                                              std::uint32_t& number) {
  bool is_found = false;
  BEELINE_NO_UNROLL
  for (std::uint32_t cell = 0; cell < shown_calls; ++cell) {
    const std::uint32_t call = number_in(mine, cell);
    if (!differ(mine, theirs, call) || (is_found && !is_before(call, number))) continue;
    number = call, is_found = true;
  }
  return is_found;
}
/// The number of the last call that a member has published.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t last_call(const SessionState* state) {
  std::uint32_t last = number_in(state, 0);
  BEELINE_NO_UNROLL
  for (std::uint32_t cell = 1; cell < shown_calls; ++cell)
    if (const std::uint32_t number = number_in(state, cell); is_before(last, number)) last = number;
  return last;
}

/// The number of the next call on a session, if no call is in progress.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t next_call(const SessionState* state) {
  return static_cast<std::uint32_t>((unsigned_round(state->round) + one_round) >> signature_bits);
}
/// Whether a member has published call `number` or a later call, or waits for other members before such a call.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_come_to(SessionState* state, std::uint32_t number) {
  return !is_before(SystemAtomic<std::uint32_t>(state->reached).load(std::memory_order_relaxed), number) ||
         !is_before(number_in(state, number % shown_calls), number);
}

/// A session's wait: for the value `expected` of `peer`, in the call that is published in `state`.
struct SessionWait {
  std::uint32_t peer;
  Compare compare;
  SessionState* state;  ///< state of this member
  std::uint64_t expected;
};

/// A wait longer than `comparison_after_ns` compares the calls with the peer's calls, in one of `looks_per_comparison`
/// checks (a power of two). So with equal calls the comparison costs nothing in short waits, and less than a thousandth
/// of long waits.
inline constexpr std::uint64_t comparison_after_ns = 1'000'000, looks_per_comparison = 8;

/// Whether this check compares the calls. A call with a time-out compares when it times out.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool compares_calls(const WaitState& state, std::uint64_t now) {
  if (state.status == Status::timeout) return true;
  return state.status == Status::ok && state.waited_ns(now) >= comparison_after_ns &&
         (now >> 10) % looks_per_comparison == 0;
}

/// As `look` of other waits; also compares this member's calls with the peer's calls. poll_until finds this overload by
/// its arguments.
BEELINE_COLD BEELINE_HOST_DEVICE inline WaitState look(const Context& ctx, SessionWait wait, Timeout timeout,
                                                       std::uint64_t observed, std::uint64_t start_ns) {
  const std::uint64_t now = machine::clock_ns();
  WaitState state = state_of_wait(ctx, now, timeout, start_ns);
  std::uint32_t number = last_call(wait.state);
  // Rounds without the signature's bits: the error shows a number of rounds.
  Awaited awaited{Operation::collective, wait.peer, number, wait.expected >> signature_bits, wait.compare};
  observed >>= signature_bits;
  std::uint64_t waited = state.waited_ns(now);
  const bool is_in_use = DeviceAtomic<std::uint32_t>(wait.state->is_open).load(std::memory_order_relaxed) > 1;
  const SessionState* const theirs = ctx.translate(wait.state, wait.peer);
  if (is_in_use || (compares_calls(state, now) && find_difference(wait.state, theirs, number))) {
    const CallWords mine = words_of(wait.state, number), other = words_of(theirs, number);
    awaited.sequence = mine.count, awaited.expected = mine.packed;
    awaited.compare = static_cast<Compare>(is_in_use ? CallDifference::session_in_use : CallDifference::call);
    observed = other.packed, waited = other.count;
    state.status = Status::invalid_argument;
  }
  if (state.is_over()) give_up(ctx, awaited, observed, waited, state.status);
  return state;
}

}  // namespace beeline::detail
