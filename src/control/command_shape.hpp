// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a command says of itself, by CPU threads and by threads of a GPU.

#include <cstdint>

#include "beeline/core/command.hpp"

namespace beeline {

/// Whether a command on one word names one: its width, and where it lies.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_word(const Command& command) {
  const std::uint64_t width = command.width;
  const bool is_scalar = width == 1 || width == 2 || width == 4 || width == 8;
  return is_scalar && command.remote % width == 0 && (command.verb == Verb::store || width >= 4);
}

/// Whether [a, a + bytes) and [b, b + more) have bytes in common.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool overlap(std::uint64_t a, std::uint64_t bytes, std::uint64_t b,
                                                      std::uint64_t more) {
  return a < b ? b - a < bytes : a - b < more;
}

}  // namespace beeline
