// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Words of symmetric memory that other ranks set.

#include <atomic>
#include <cstdint>

namespace beeline::gaspi {

/// Loads a word. What its sender wrote before it is visible afterwards.
[[nodiscard]] inline std::uint64_t load_acquired(const std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

}  // namespace beeline::gaspi
