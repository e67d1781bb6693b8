// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations on words of the peer and of this rank without the library: atomics of system scope.

#include <cstdint>
#include <type_traits>

#include "beeline/core/command.hpp"
#include "beeline/device/context.hpp"
#include "beeline/device/group.hpp"
#include "beeline/device/impl/atomic_word.hpp"

namespace beeline::bench {

using BareWord = machine::SystemAtomic<std::uint64_t>;

/// Adds to `*there`, and returns the old value.
BEELINE_HOST_DEVICE inline std::uint64_t bare_fetch_add(std::uint64_t* there, std::uint64_t value) {
  return BareWord(*there).fetch_add(value, std::memory_order_relaxed);
}

/// Stores `desired` if `*there` is `expected`, and returns the old value.
BEELINE_HOST_DEVICE inline std::uint64_t bare_compare_swap(std::uint64_t* there, std::uint64_t expected,
                                                           std::uint64_t desired) {
  BareWord(*there).compare_exchange_strong(expected, desired, std::memory_order_relaxed);
  return expected;
}

/// Stores to `*there`.
BEELINE_HOST_DEVICE inline void bare_store_word(std::uint64_t* there, std::uint64_t value) {
  BareWord(*there).store(value, std::memory_order_relaxed);
}

/// The least work for a message of 8 bytes with a signal: a store, and a second store that releases it. Copies a word
/// from `source` to `destination`, then sets `flag` to `sequence`. One thread calls it.
BEELINE_HOST_DEVICE inline void bare_post(std::uint64_t* destination, const std::uint64_t* source, std::uint64_t* flag,
                                          std::uint64_t sequence) {
  *destination = *source;
  BareWord(*flag).store(sequence, std::memory_order_release);
}

/// Stores what a post of a command stores, without taking a ticket: the command's bytes, then its sequence number.
BEELINE_HOST_DEVICE inline void bare_post_command(beeline::Command& slot, std::uint64_t sequence) {
  using beeline::Command;
  auto* const to = reinterpret_cast<std::byte*>(&slot);
  machine::store_as(to + offsetof(Command, verb), sequence);
  for (const std::size_t at : {offsetof(Command, remote), offsetof(Command, rows), offsetof(Command, remote_stride)})
    machine::store_as(to + at, machine::Word16{sequence, sequence});
  BareWord(slot.sequence).store(sequence, std::memory_order_release);
}

/// Polls until `*here` is at least `value`; returns false if the limit on polls, about a minute, ends the wait because
/// the peer is gone. On a CPU it yields its core as the library does; otherwise two ranks on one core would spend their
/// time slices spinning.
template <std::memory_order order, class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE bool bare_poll(const BlockGroup&, const Context& ctx, std::uint64_t* here,
                                                 std::uint64_t value) {
  constexpr std::uint32_t most_polls = std::uint32_t{1} << (std::is_same_v<BlockGroup, Block> ? 27 : 20);
  for (std::uint32_t poll = 0; poll < most_polls; ++poll) {
    if (BareWord(*here).load(order) >= value) return true;
    machine::back_off(poll, ctx.polling);
  }
  return false;
}

}  // namespace beeline::bench
