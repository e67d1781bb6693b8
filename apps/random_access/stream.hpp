// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The benchmark's stream of pseudo-random numbers: number n is x^n in GF(2)[x] modulo x^64 + x^2 + x + 1, its
/// coefficients being the bits of a word. Source: HPC Challenge, RandomAccess (`HPCC_starts`).

#include <cstdint>

#include "beeline/core/macros.hpp"

namespace random_access {

/// x^64 modulo the polynomial.
inline constexpr std::uint64_t polynomial = 7;

/// The number after `number`: the product with x.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t next_number(std::uint64_t number) {
  const auto sign = static_cast<std::uint64_t>(static_cast<std::int64_t>(number) >> 63);  // all bits, or none
  return (number << 1) ^ (sign & polynomial);
}

namespace detail {

/// Moves bit i of the lower half to bit 2 i.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t spread(std::uint64_t half) {
  half = (half | half << 16) & 0x0000ffff0000ffffu;
  half = (half | half << 8) & 0x00ff00ff00ff00ffu;
  half = (half | half << 4) & 0x0f0f0f0f0f0f0f0fu;
  half = (half | half << 2) & 0x3333333333333333u;
  return (half | half << 1) & 0x5555555555555555u;
}

/// The square of a polynomial has its coefficients at the even powers. Those from x^64 on are reduced.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t square(std::uint64_t number) {
  const std::uint64_t low = spread(number & 0xffffffffu), high = spread(number >> 32);
  return low ^ high ^ (high << 1) ^ (high << 2) ^ ((high >> 62) * polynomial);
}

}  // namespace detail

/// Number `n` of the stream, which begins with number 0, the word 1. Takes 63 squarings, so that threads can begin
/// anywhere.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t starts(std::uint64_t n) {
  std::uint64_t number = 1;
  BEELINE_NO_UNROLL
  for (int bit = 63; bit >= 0; --bit) {
    number = detail::square(number);
    if ((n >> bit & 1u) != 0) number = next_number(number);
  }
  return number;
}

}  // namespace random_access
