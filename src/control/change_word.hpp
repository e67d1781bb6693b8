// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a command does to a word, by a CPU thread or by a thread of a GPU.

#include <cstdint>
#include <cstring>

#include "beeline/core/command.hpp"
#include "beeline/device/impl/atomic_word.hpp"
#include "beeline/device/impl/scalar_machine.hpp"

namespace beeline::detail {

template <class T>
BEELINE_HOST_DEVICE T change_as(const Command& command, void* at) {
  constexpr auto order = std::memory_order_seq_cst;
  const machine::SystemAtomic<T> word(*static_cast<T*>(at));
  const T operand = static_cast<T>(command.local);
  switch (command.verb) {
    case Verb::add:
      return word.fetch_add(operand, order);
    case Verb::bit_and:
      return word.fetch_and(operand, order);
    case Verb::bit_or:
      return word.fetch_or(operand, order);
    case Verb::bit_xor:
      return word.fetch_xor(operand, order);
    case Verb::minimum:
      return word.fetch_min(operand, order);
    case Verb::maximum:
      return word.fetch_max(operand, order);
    case Verb::exchange:
      return word.exchange(operand, order);
    case Verb::compare_swap: {
      T held = static_cast<T>(command.rows);
      word.compare_exchange_strong(held, operand, order);
      return held;
    }
    default:
      word.store(operand, std::memory_order_release);
      return 0;
  }
}

/// Returns what the word held, of an atomic.
BEELINE_HOST_DEVICE inline std::uint64_t change_word(const Command& command, void* at) {
  switch (command.width) {
    case 1:
      machine::store_scalar(static_cast<std::uint8_t*>(at), static_cast<std::uint8_t>(command.local));
      return 0;
    case 2:
      machine::store_scalar(static_cast<std::uint16_t*>(at), static_cast<std::uint16_t>(command.local));
      return 0;
    case 4:
      return command.is_signed ? static_cast<std::uint32_t>(change_as<std::int32_t>(command, at))
                               : change_as<std::uint32_t>(command, at);
    default:
      return command.is_signed ? static_cast<std::uint64_t>(change_as<std::int64_t>(command, at))
                               : change_as<std::uint64_t>(command, at);
  }
}

/// Stores the bytes that a command holds, by a CPU thread. A word may be one that its receiver waits for.
inline void put_inline(const Command& command, void* at) {
  if (command.width == sizeof(std::uint64_t) && reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) == 0)
    machine::SystemAtomic<std::uint64_t>(*static_cast<std::uint64_t*>(at))
        .store(command.local, std::memory_order_release);
  else
    std::memcpy(at, &command.local, command.width);
}

}  // namespace beeline::detail
