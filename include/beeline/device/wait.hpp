// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Polling with a time-out, a deadline and an abort word: the only loop that waits in device code.

#include <cstdint>
#include <iterator>
#include <type_traits>

#include "beeline/core/call_fault.hpp"
#include "beeline/core/status.hpp"
#include "beeline/device/context.hpp"
#include "beeline/device/group.hpp"
#include "beeline/device/impl/atomic_word.hpp"
#include "beeline/device/impl/machine.hpp"

namespace beeline {

/// A call's own time limit. At the limit the call returns `Status::timeout`; nothing is lost, and a repetition of the
/// call continues it. A limit of at least the context's deadline has no effect: the deadline ends the call.
/// Source: GASPI specification, time-out argument (seed 000, 4.3).
struct Timeout {
  std::uint64_t ns;
  /// No limit but the context's deadline.
  [[nodiscard]] BEELINE_HOST_DEVICE static constexpr Timeout none() { return {~std::uint64_t{0}}; }
  /// Polls once.
  [[nodiscard]] BEELINE_HOST_DEVICE static constexpr Timeout test() { return {0}; }
};

/// The memory order that an operation gives, besides its own effect.
enum class Order : std::uint32_t {
  relaxed,  ///< none: execution only
  memory    ///< release on the side that signals, acquire on the side that waits
};

/// How a wait compares the observed value with the given one: `observed <compare> value`. Source: OpenSHMEM 1.5,
/// wait_until.
enum class Compare : std::uint16_t { equal, not_equal, greater, greater_equal, less, less_equal };

/// Description of a wait, written to its record if the wait fails. `compare` shares a register with `operation`.
struct Awaited {
  BEELINE_HOST_DEVICE constexpr Awaited(Operation waiting, std::uint32_t from, std::uint64_t number,
                                        std::uint64_t value, Compare comparison = Compare::greater_equal)
      : operation(waiting), compare(comparison), peer(from), sequence(number), expected(value) {}

  Operation operation;
  Compare compare;         ///< comparison of the observed value with `expected`; the default is that of a counter
  std::uint32_t peer;      ///< rank of the team, or `no_peer`
  std::uint64_t sequence;  ///< number of the message or epoch; for `Operation::wait` the address of the word
  std::uint64_t expected;
};
static_assert(std::is_trivially_copyable_v<Awaited> && sizeof(Awaited) == 24);

namespace detail {

using machine::DeviceAtomic;
using machine::SystemAtomic;

/// Polls between two checks of the clock and the abort word. A check takes as long as one or two polls, so checks are
/// rare.
inline constexpr std::uint32_t polls_per_look = 64;

BEELINE_HOST_DEVICE inline std::uint64_t read_abort_word(const Context& ctx) {
  return SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(ctx.abort_words[ctx.team]))
      .load(std::memory_order_relaxed);
}

/// Sets the abort words of all `places` of the team: for each, the word that CPU threads poll and the word that kernels
/// poll. Plain stores: GPU and CPU share no atomics on host memory.
BEELINE_HOST_DEVICE inline void raise_abort(const Context& ctx, std::uint32_t culprit) {
  auto* words = const_cast<std::uint64_t*>(ctx.abort_words);
  BEELINE_NO_UNROLL
  for (std::uint32_t place = 0; place < ctx.places; ++place)
    for (std::uint64_t* word : {ctx.translate(ctx.host_abort_words, place), ctx.translate(words, place)})
      SystemAtomic<std::uint64_t>(word[ctx.team]).store(abort_word(culprit), std::memory_order_relaxed);
}

/// Whether this rank has already recorded a failed wait of the same operation for the same peer. After an abort every
/// queued kernel fails in the same way, and one record suffices.
BEELINE_HOST_DEVICE inline bool is_recorded(const Context& ctx, const Awaited& awaited, std::uint32_t peer) {
  const std::uint32_t claims = DeviceAtomic<std::uint32_t>(*ctx.wait_claims).load(std::memory_order_relaxed);
  const std::uint32_t used = claims < max_wait_records ? claims : max_wait_records;
  BEELINE_NO_UNROLL
  for (std::uint32_t i = 0; i < used; ++i) {
    WaitRecord& record = ctx.waits[i];
    if (SystemAtomic<std::uint32_t>(record.status).load(std::memory_order_acquire) != 0 && record.team == ctx.team &&
        record.operation == static_cast<std::uint32_t>(awaited.operation) && record.peer == peer)
      return true;
  }
  return false;
}

BEELINE_HOST_DEVICE inline void record_wait(const Context& ctx, const Awaited& awaited, std::uint64_t observed,
                                            std::uint64_t waited_ns, Status status) {
  const std::uint32_t peer = awaited.peer == no_peer ? no_peer : ctx.world_rank(awaited.peer);
  if (is_recorded(ctx, awaited, peer)) return;
  const std::uint32_t index = DeviceAtomic<std::uint32_t>(*ctx.wait_claims).fetch_add(1, std::memory_order_relaxed);
  if (index >= max_wait_records) return;
  WaitRecord& record = ctx.waits[index];
  record.operation = static_cast<std::uint32_t>(awaited.operation);
  record.rank = ctx.own_world_rank;
  record.peer = peer;
  record.team = ctx.team;
  record.comparison = static_cast<std::uint8_t>(awaited.compare);
  record.resident = ctx.resident;
  record.kernel = ctx.kernel;
  record.sequence = awaited.sequence;
  record.expected = awaited.expected;
  record.observed = observed;
  record.waited_ns = waited_ns;
  SystemAtomic<std::uint32_t>(record.status).store(static_cast<std::uint32_t>(status), std::memory_order_release);
}

/// The fault of a refused call, with the value that the call requires and the value that it got.
struct Finding {
  CallFault fault;
  std::uint64_t expected = 0, observed = 0;
};

/// Records the refusal of a call and aborts the team, since another rank may wait for the call's effect. One thread
/// calls it.
///   peer  any number; a number that is not a rank of the team is not recorded
BEELINE_HOST_DEVICE inline Status record_refusal(const Context& ctx, Operation operation, std::uint32_t peer,
                                                 Finding found, Status status) {
  const auto fault = static_cast<std::uint64_t>(found.fault);
  record_wait(ctx, Awaited{operation, peer < ctx.size ? peer : no_peer, fault, found.expected}, found.observed, 0,
              status);
  raise_abort(ctx, ctx.own_world_rank);
  return status;
}
/// `record_refusal`, compiled out of line.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status refuse(const Context& ctx, Operation operation, std::uint32_t peer,
                                                      Finding found, Status status) {
  return record_refusal(ctx, operation, peer, found, status);
}

/// Offset of a word in this rank's slot, which other processes can interpret, too; 0 for other memory.
BEELINE_HOST_DEVICE inline std::uint64_t place_in_slot(const Context& ctx, std::uint64_t address) {
  const auto* const word = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address));
  return ctx.owner_of(word) == ctx.own_world_rank ? ctx.offset_in_slot(word) : 0;
}

/// Ends a wait that cannot continue: writes its record, and aborts the team unless it is aborted already.
BEELINE_HOST_DEVICE inline Status give_up(const Context& ctx, Awaited awaited, std::uint64_t observed,
                                          std::uint64_t waited_ns, Status status) {
  if (awaited.operation == Operation::wait) awaited.sequence = place_in_slot(ctx, awaited.sequence);
  record_wait(ctx, awaited, observed, waited_ns, status);
  if (status != Status::aborted)
    raise_abort(ctx, awaited.peer == no_peer ? ctx.own_world_rank : ctx.world_rank(awaited.peer));
  return status;
}

/// The state of a wait.
struct WaitState {
  Status status;           ///< ok until the wait ends without its value
  std::uint64_t start_ns;  ///< time of the first check, even; 0 before it; odd once the wait has to end

  [[nodiscard]] BEELINE_HOST_DEVICE bool is_over() const { return status != Status::ok && status != Status::timeout; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t waited_ns(std::uint64_t now) const {
    return now - (start_ns & ~std::uint64_t{1});
  }
};

/// Checks the abort word and, with `now`, the limits of a wait. If the wait has to end, it polls once more before it
/// gives up, so that a value that arrived before the end counts. Otherwise a barrier that one rank has completed could
/// fail on another rank because of what the first rank did next. A wait with a time-out shorter than the deadline times
/// out, also if its thread was stopped until after the deadline: it does not end the team.
[[nodiscard]] BEELINE_HOST_DEVICE inline WaitState state_of_wait(const Context& ctx, std::uint64_t now, Timeout timeout,
                                                                 std::uint64_t start_ns) {
  WaitState state{Status::ok, start_ns == 0 ? now & ~std::uint64_t{1} : start_ns};
  const std::uint64_t waited = state.waited_ns(now);
  const bool aborted = read_abort_word(ctx) != 0;
  if (!aborted && (waited < ctx.deadline_ns || timeout.ns < ctx.deadline_ns)) {
    if (waited >= timeout.ns || (machine::is_interrupted(now, waited) && read_abort_word(ctx) == 0))
      state.status = Status::timeout;
  } else if ((state.start_ns & 1u) == 0) {
    state.start_ns |= 1u;
  } else {
    state.status = aborted ? Status::aborted : Status::deadline;
  }
  return state;
}

/// Checks the clock and the abort word. Arguments are passed by value: an argument with an address would have to be in
/// memory while the wait polls. Waits with another type than `Awaited` have a `look` of their own
/// (collectives/impl/session_wait.hpp).
BEELINE_COLD BEELINE_HOST_DEVICE inline WaitState look(const Context& ctx, Awaited awaited, Timeout timeout,
                                                       std::uint64_t observed, std::uint64_t start_ns) {
  const std::uint64_t now = machine::clock_ns();
  const WaitState state = state_of_wait(ctx, now, timeout, start_ns);
  if (state.is_over()) give_up(ctx, awaited, observed, state.waited_ns(now), state.status);
  return state;
}

}  // namespace detail

/// Polls `ready(observed)` until it is true. One thread calls it.
///   awaited  an `Awaited`, or another type that has a `look`
///   ready    sets `observed` to the value that it has read, and returns whether the wait is over
/// Returns ok; timeout (the call's own limit passed); deadline (recorded, team aborted); aborted (recorded).
template <class What = Awaited, class Ready>
BEELINE_HOST_DEVICE Status poll_until(const Context& ctx, const What& awaited, Timeout timeout, Ready ready) {
  using detail::look;
  std::uint64_t observed = 0;
  detail::WaitState state{Status::ok, 0};
  for (std::uint32_t poll = 0;;) {
    BEELINE_NO_UNROLL
    for (std::uint32_t left = detail::polls_per_look; left > 0; --left) {
      if (ready(observed)) return Status::ok;
      if (timeout.ns == 0) return Status::timeout;
      machine::back_off(++poll, ctx.polling);
      if (machine::backs_off(poll, ctx.polling)) break;
    }
    state = look(ctx, awaited, timeout, observed, state.start_ns);
    if (state.status != Status::ok) return state.status;
  }
}

namespace detail {

/// Number of acquiring polls of a word, which take some 7 us on a GPU. An acquiring poll does not lengthen a short
/// wait, but it invalidates the multiprocessor's first-level cache, which slows down blocks that compute beside the
/// waiter. So a long wait continues with relaxed polls, and needs one more load at its end.
inline constexpr std::uint32_t acquiring_polls = 64;

/// Polls `word` until `holds(value)`; `Order::memory` acquires the data that were released with the value. One thread
/// calls it.
template <class What = Awaited, class Word, class Holds>
BEELINE_HOST_DEVICE Status await_word(const Context& ctx, const What& awaited, Timeout timeout, const Word& word,
                                      Order order, Holds holds) {
  if (order == Order::memory && timeout.ns != 0) {
    BEELINE_NO_UNROLL
    for (std::uint32_t poll = 0; poll < acquiring_polls; ++poll)
      if (holds(word.load(std::memory_order_acquire))) return Status::ok;
  }
  return poll_until(ctx, awaited, timeout, [&](std::uint64_t& observed) {
    observed = word.load(std::memory_order_relaxed);
    if (!holds(observed) || order == Order::relaxed) return holds(observed);
    observed = word.load(std::memory_order_acquire);
    return holds(observed);
  });
}

}  // namespace detail

namespace detail {

/// The most severe status of the group's threads. At least one status is not `ok`.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status gravest(const Group& group, Status mine) {
  constexpr Status order[] = {Status::deadline, Status::aborted, Status::timeout, Status::no_resource,
                              Status::unreachable};
  std::uint32_t packed = 0;  // an array would be in memory, not in a register
  for (std::size_t i = std::size(order); i-- > 0;) packed = packed << 4 | static_cast<std::uint32_t>(order[i]);
  BEELINE_NO_UNROLL
  for (; packed != 0; packed >>= 4)
    if (group.any(mine == static_cast<Status>(packed & 15u))) return static_cast<Status>(packed & 15u);
  return Status::invalid_argument;
}

}  // namespace detail

/// Gives all threads of the group one status: `ok` if it is `ok` on all of them, otherwise the most severe. Includes a
/// `group.sync()`. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Status agree(const Group& group, Status mine) {
  if constexpr (std::is_same_v<Group, Thread>)
    return mine;
  else
    return group.any(mine != Status::ok) ? detail::gravest(group, mine) : Status::ok;
}

}  // namespace beeline
