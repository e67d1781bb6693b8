// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a group waits for one of many notifications, and resets one.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/device/signal.hpp"
#include "beeline/gaspi/endpoint.hpp"

namespace beeline::gaspi::detail {

/// The limit of a wait: the call's own time-out, or a time before the context's deadline, at which a wait of Beeline
/// would abort the world.
class Limit {
 public:
  BEELINE_HOST_DEVICE Limit(const Context& ctx, Timeout timeout)
      : longest_ns_(ctx.deadline_ns - ctx.deadline_ns / 8), timeout_(timeout) {}

  [[nodiscard]] BEELINE_HOST_DEVICE Timeout timeout() const {
    return timeout_.ns < longest_ns_ ? timeout_ : Timeout{longest_ns_};
  }
  /// The status of a wait with this limit, for its caller.
  [[nodiscard]] BEELINE_HOST_DEVICE Status status(Status waited) const {
    return waited == Status::timeout && timeout_.ns >= longest_ns_ ? Status::deadline : waited;
  }

 private:
  std::uint64_t longest_ns_;
  Timeout timeout_;
};

/// Gives the first thread's word to every thread of the group, bit by bit. Every thread calls it.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t shared_word(const Group& group, std::uint32_t mine) {
  if constexpr (std::is_same_v<Group, Thread>) {
    return mine;
  } else {
    std::uint32_t word = 0;
    BEELINE_NO_UNROLL
    for (std::uint32_t bit = 0; bit < 32; ++bit)
      if (group.any(group.thread_rank() == 0 && (mine >> bit & 1u) != 0)) word |= 1u << bit;
    return word;
  }
}

/// The smallest of the threads' numbers, all of which are at most `most`, on every thread. Every thread calls it.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t smallest(const Group& group, std::uint32_t mine, std::uint32_t most) {
  if constexpr (std::is_same_v<Group, Thread>) {
    return mine;
  } else {
    std::uint32_t bits = 1;
    BEELINE_NO_UNROLL
    while ((most >> bits) != 0) ++bits;
    std::uint32_t found = 0;
    BEELINE_NO_UNROLL
    for (std::uint32_t bit = bits; bit-- > 0;) {
      // Does a number begin with the bits found so far, followed by a 0?
      const bool has_zero = group.any((mine >> bit) == found << 1);
      found = found << 1 | (has_zero ? 0u : 1u);
    }
    return found;
  }
}

/// The flags of some notifications of a segment.
struct Flags {
  const std::uint64_t* first;
  std::uint32_t count;
};

/// Index of the first flag that is set among those that this thread looks at, every `group.size()`th; `flags.count` if
/// none is. The data that the flag announced are visible to this thread.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t first_set(const Group& group, const Flags& flags) {
  constexpr std::uint32_t at_once = 8;  // loads in flight
  const std::uint32_t step = group.size();
  for (std::uint32_t i = group.thread_rank(); i < flags.count; i += at_once * step) {
    std::uint64_t any = 0;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < at_once; ++k)
      if (k == 0 || flags.count - i > k * step)
        any |= ::beeline::detail::load_signal(flags.first + i + k * step, Order::relaxed);
    if (any == 0) continue;
    for (std::uint32_t k = i; k < flags.count && k < i + at_once * step; k += step)
      if (::beeline::detail::load_signal(flags.first + k, Order::memory) != 0) return k;
  }
  return flags.count;
}

inline namespace BEELINE_CALLS {

/// Waits until one of the flags is set, and sets `index` to the lowest that is found. Every thread calls it.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status wait_for_some(const Group& group, const Context& ctx, const Flags& flags,
                                                       Timeout timeout, std::uint32_t& index) {
  constexpr std::uint32_t rounds_per_look = 16;
  const Awaited awaited{Operation::wait_any, no_peer, flags.count, 0, Compare::not_equal};
  ::beeline::detail::WaitState state{Status::ok, 0};
  BEELINE_NO_UNROLL
  for (std::uint32_t round = 0;; ++round) {
    const std::uint32_t mine = first_set(group, flags);
    if (group.any(mine < flags.count)) {
      index = smallest(group, mine, flags.count);
      return Status::ok;
    }
    if (timeout.ns == 0) return Status::timeout;
    // One thread reads the clock, since the threads have to leave the loop in the same round.
    if (group.thread_rank() == 0) {
      machine::back_off(round, ctx.polling);
      if (round % rounds_per_look == 0 || machine::backs_off(round, ctx.polling))
        state = ::beeline::detail::look(ctx, awaited, timeout, 0, state.start_ns);
    }
    if (const Status status = agree(group, state.status); status != Status::ok) return status;
  }
}

/// Resets one flag of the calling rank's part, and sets `before` on the group's first thread. Every thread calls it.
///   id  ~0: out of range
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reset_flag(const Group& group, const Context& ctx, const SegmentEntry& own,
                                                    std::uint32_t id, std::uint64_t& before) {
  if (own.bytes == 0 || id == ~0u) return Status::invalid_argument;
  if constexpr (::beeline::detail::executor == DeviceKind::gpu)
    if (own.host_flags != 0) return Status::unreachable;
  Status status = Status::ok;
  if (group.thread_rank() == 0) status = exchange(ctx, own.flags + id, 0, before);
  return agree(group, status);
}

}  // namespace BEELINE_CALLS

}  // namespace beeline::gaspi::detail
