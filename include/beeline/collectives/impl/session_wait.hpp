// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a session waits for, and what it looks at while it waits for long: whether the members are in the same call.
///
/// Each member shows the call that it is in to the others, in its session's state, in two pairs of packets: 8 bytes of
/// the description, then the count, each flagged with the number of the call's first round, which is the same on all
/// members. So who reads them needs no fence: what bears the number of its own call is whole, and of that call. There
/// are two places, by the parity of the number: a member may be a call ahead where it only sends, in one round, and the
/// next round waits for the others.
///
///   rank 0   call 5: allreduce  ──── waits for words of rank 1 ─────┐ 1 ms: its call 5 is another
///   rank 1   call 5: broadcast  ──── waits for words of rank 0 ─────┘ -> both calls recorded, team aborted

#include <cstdint>

#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/operation.hpp"
#include "beeline/device/packets.hpp"

namespace beeline::detail {

/// What two members differ in: of lengths, in the one that this member sends, or that it expects; or what else is wrong
/// with a call: a root that is no member, data that belong to another call, before or after it. Lies where a record has
/// its comparison.
enum class CallDifference : std::uint16_t { call, session_in_use, places, sent_length, expected_length, root, order };

/// A call as its record has it: what `CallDescription` packs, and the count.
struct CallWords {
  std::uint64_t packed, count;
};

/// The record of two calls, or two values of them, that do not fit together.
struct DifferingCalls {
  CallDifference what;
  std::uint32_t peer;
  CallWords mine, theirs;
};

/// Records it, and aborts the team. Out of the way.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status refuse_call(const Context& ctx, DifferingCalls calls) {
  const Awaited awaited{Operation::collective, calls.peer, calls.mine.count, calls.mine.packed,
                        static_cast<Compare>(calls.what)};
  return give_up(ctx, awaited, calls.theirs.packed, calls.theirs.count, Status::invalid_argument);
}

/// What a session adds to its round's number to enter the next: below are the bits of the call's signature.
inline constexpr std::uint64_t one_round = std::uint64_t{1} << signature_bits;
/// A round's number without them.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t unsigned_round(std::uint64_t round) {
  return round & ~(one_round - 1);
}

/// Whether a member that shows `observed` has reached `round`. One that is in the same round of another call has not,
/// and who is a round ahead has seen this member's.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool has_reached(std::uint64_t observed, std::uint64_t round) {
  const std::uint32_t differing = static_cast<std::uint32_t>(observed) ^ static_cast<std::uint32_t>(round);
  return observed >= round &&
         differing - 1 >= static_cast<std::uint32_t>(one_round - 1);  // bits of the signature alone, or none
}

BEELINE_HOST_DEVICE inline void show_call(SessionState* state, std::uint32_t number, const CallDescription& call) {
  machine::PacketPair* const place = state->calls[number & 1u];
  machine::store_packets(place, packets_of(call.packed(), number));
  machine::store_packets(place + 1, packets_of(call.count, number));
}
/// A call that a member has shown.
[[nodiscard]] BEELINE_HOST_DEVICE inline CallWords words_of(const SessionState* state, std::uint32_t number) {
  const machine::PacketPair* const place = state->calls[number & 1u];
  return {payload_of(machine::load_packets(place)), payload_of(machine::load_packets(place + 1))};
}
/// Whether the two show different calls `number`, both of them whole.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool differ(const SessionState* a, const SessionState* b,
                                                     std::uint32_t number) {
  bool are_whole = true, are_same = true;
  BEELINE_NO_UNROLL
  for (std::uint32_t i = 0; i < 2; ++i) {
    const machine::PacketPair mine = machine::load_packets(&a->calls[number & 1u][i]),
                              other = machine::load_packets(&b->calls[number & 1u][i]);
    are_whole = are_whole && has_flags(mine, number) && has_flags(other, number);
    are_same = are_same && mine.low == other.low && mine.high == other.high;
  }
  return are_whole && !are_same;
}
/// The number of the last call that a member has shown.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t last_call(const SessionState* state) {
  const auto number = [state](std::uint32_t place) {
    return static_cast<std::uint32_t>(machine::load_packets(state->calls[place]).low >> 32);
  };
  const std::uint32_t even = number(0), odd = number(1);
  return static_cast<std::int32_t>(odd - even) > 0 ? odd : even;
}

/// The number that the next call on a session will show, if none is under way.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t next_call(const SessionState* state) {
  return static_cast<std::uint32_t>((unsigned_round(state->round) + one_round) >> signature_bits);
}
/// Whether a member shows call `number`, one behind it, or that it waits for others before one of these.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_come_to(SessionState* state, std::uint32_t number) {
  const auto is_there = [number](std::uint32_t shown) { return static_cast<std::int32_t>(shown - number) >= 0; };
  return is_there(SystemAtomic<std::uint32_t>(state->reached).load(std::memory_order_relaxed)) ||
         is_there(static_cast<std::uint32_t>(machine::load_packets(state->calls[number & 1u]).low >> 32));
}

/// What a session waits for: `expected` of `peer`, in the call that `state` shows.
struct SessionWait {
  std::uint32_t peer;
  Compare compare;
  SessionState* state;  ///< this member's
  std::uint64_t expected;
};

/// Calls are compared with that of the peer once a wait takes longer, in one of so many looks, a power of two: what is
/// right costs nothing up to then, and less than a thousandth of the wait afterwards.
inline constexpr std::uint64_t patience_ns = 1'000'000, looks_per_comparison = 8;

/// Whether this look compares. A call with a time-out of its own does so where it ends.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool compares_calls(const WaitState& state, std::uint64_t now) {
  if (state.status == Status::timeout) return true;
  return state.status == Status::ok && state.waited_ns(now) >= patience_ns && (now >> 10) % looks_per_comparison == 0;
}

/// As `look` of other waits, and compares the call with that of the peer, wherever that one is. Found by poll_until
/// from its arguments.
BEELINE_COLD BEELINE_HOST_DEVICE inline WaitState look(const Context& ctx, SessionWait wait, Timeout timeout,
                                                       std::uint64_t observed, std::uint64_t start_ns) {
  const std::uint64_t now = machine::clock_ns();
  WaitState state = state_of_wait(ctx, now, timeout, start_ns);
  const std::uint32_t number = last_call(wait.state);
  // Rounds without the signature's bits: whoever reads the error counts rounds.
  Awaited awaited{Operation::collective, wait.peer, number, wait.expected >> signature_bits, wait.compare};
  observed >>= signature_bits;
  std::uint64_t waited = state.waited_ns(now);
  const bool is_in_use = DeviceAtomic<std::uint32_t>(wait.state->is_open).load(std::memory_order_relaxed) > 1;
  const SessionState* const theirs = ctx.translate(wait.state, wait.peer);
  if (is_in_use || (compares_calls(state, now) && differ(wait.state, theirs, number))) {
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
