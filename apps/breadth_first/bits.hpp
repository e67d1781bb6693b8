// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The parts of a device that share a word of a bitmap: on a GPU a warp, whose threads have a bit each, on a CPU one
/// thread, which has all 32.

#include <bit>
#include <cstdint>

#include "beeline/device/impl/warp_machine.hpp"

namespace breadth_first {

#if BEELINE_ON_GPU
inline constexpr std::uint32_t lanes = 32;
#else
inline constexpr std::uint32_t lanes = 1;
#endif

/// The word whose bit i is `holds(i)`. All threads of a warp call it; `holds` is called once for each bit.
template <class Holds>
[[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t word_of(const Holds& holds) {
#if BEELINE_ON_GPU
  return beeline::machine::ballot(holds(beeline::machine::lane()));
#else
  std::uint32_t word = 0;
  for (std::uint32_t bit = 0; bit < 32; ++bit)
    if (holds(bit)) word |= 1u << bit;
  return word;
#endif
}

/// The number of the lowest bit that is set; `bits` is not 0. (In kernels nvcc 13.0 makes std::countr_zero the constant
/// 32.)
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t lowest_bit(std::uint32_t bits) {
  return static_cast<std::uint32_t>(std::popcount((bits & (0 - bits)) - 1));
}

[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_bit(const std::uint32_t* bits, std::uint32_t index) {
  return (bits[index / 32] >> index % 32 & 1u) != 0;
}

}  // namespace breadth_first
