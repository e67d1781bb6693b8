// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Conversions of 16-bit floats: one instruction on a GPU, bit operations on a CPU. Both round to nearest, ties to
/// even. Source: PTX ISA 8.3, cvt; IEEE 754-2019, 3.4 and 4.3.1.

#include <cstdint>
#include <cstring>

#include "beeline/core/macros.hpp"

namespace beeline::machine {

BEELINE_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
BEELINE_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

BEELINE_HOST_DEVICE inline float from_bfloat(std::uint16_t bits) { return float_of(std::uint32_t{bits} << 16); }

#if BEELINE_ON_GPU

BEELINE_HOST_DEVICE inline float from_half(std::uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
BEELINE_HOST_DEVICE inline std::uint16_t to_half(float value) {
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
BEELINE_HOST_DEVICE inline std::uint16_t to_bfloat(float value) {
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

#else

// All cases are computed, and one result is chosen by bit masks, so that loops over these functions compile to vector
// instructions.

/// `chosen` if the condition holds, otherwise `other`.
inline std::uint32_t select(bool condition, std::uint32_t chosen, std::uint32_t other) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
  return (chosen & mask) | (other & ~mask);
}

inline float from_half(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16, magnitude = half & 0x7fffu;
  // Multiplying by 2^112 shifts the exponent's bias, and makes subnormal numbers normal.
  const std::uint32_t finite = bits_of(float_of(magnitude << 13) * float_of(0x77800000u));
  const std::uint32_t special = 0x7f800000u | (magnitude & 0x3ffu) << 13;  // infinity, NaN
  return float_of(sign | select(magnitude >= 0x7c00u, special, finite));
}

inline std::uint16_t to_half(float value) {
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
  // Adding one half lets the hardware round at the bit of the smallest subnormal.
  const std::uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  const std::uint32_t finite = select(magnitude < 0x38800000u, subnormal, normal);
  const std::uint32_t rounded = sign | select(magnitude >= 0x477ff000u, 0x7c00u, finite);
  // A GPU converts every NaN to this value.
  return static_cast<std::uint16_t>(select(magnitude > 0x7f800000u, 0x7fffu, rounded));
}

inline std::uint16_t to_bfloat(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif

}  // namespace beeline::machine
