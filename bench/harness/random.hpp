// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Random words that are the same in host code and in kernels.

#include <cstdint>

#include "beeline/core/macros.hpp"

namespace beeline::bench {

/// The `index`-th word of the stream that `seed` starts. Source: SplitMix64 (Steele, Lea, Flood 2014).
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t random_word(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t word = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

}  // namespace beeline::bench
