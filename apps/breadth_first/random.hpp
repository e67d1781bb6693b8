// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The random numbers of Graph500: the multiple recursive generator of L'Ecuyer, Blouin and Couture, "A search for good
/// multiple recursive random number generators" (ACM TOMACS 3, 1993), table 3, m = 2^31 - 1, k = 5:
///
///     x(n) = 107374182 x(n - 1) + 104480 x(n - 5)  mod m
///
/// A power of the transition matrix skips numbers, so that any thread can begin anywhere in the sequence.

#include <cstdint>

#include "beeline/core/macros.hpp"

namespace breadth_first {

inline constexpr std::uint64_t modulus = 0x7fffffff;

/// A number below 2^35 that is congruent to `value` modulo 2^31 - 1.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t folded(std::uint64_t value) {
  return (value & modulus) + (value >> 31);
}
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t reduced(std::uint64_t value) {
  value = folded(folded(value));
  return static_cast<std::uint32_t>(value >= modulus ? value - modulus : value);
}

/// The last five numbers of the sequence, the latest first.
struct Random {
  std::uint32_t last[5];

  /// The next number, 0 to 2^31 - 2.
  BEELINE_HOST_DEVICE std::uint32_t next() {
    const std::uint32_t number =
        reduced(folded(std::uint64_t{107374182} * last[0]) + folded(std::uint64_t{104480} * last[4]));
    for (int i = 4; i > 0; --i) last[i] = last[i - 1];
    return last[0] = number;
  }
};

/// A power of the transition matrix: skips a fixed count of numbers.
struct Skip {
  std::uint32_t row[5][5];

  [[nodiscard]] BEELINE_HOST_DEVICE Random from(const Random& state) const {
    Random after{};
    for (int i = 0; i < 5; ++i) {
      std::uint64_t sum = 0;
      for (int j = 0; j < 5; ++j) sum += folded(std::uint64_t{row[i][j]} * state.last[j]);
      after.last[i] = reduced(sum);
    }
    return after;
  }
};

/// Skips the numbers of both.
[[nodiscard]] Skip both(const Skip& one, const Skip& other);
/// Skips 2^log2 * times numbers.
[[nodiscard]] Skip skip_of(int log2, std::uint64_t times);

/// The state that the official program makes of its two seeds.
[[nodiscard]] Random seeded(std::uint64_t first, std::uint64_t second);

}  // namespace breadth_first
