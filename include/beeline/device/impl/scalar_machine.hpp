// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One scalar of 1, 2, 4 or 8 bytes, stored or loaded by one instruction, relaxed, of system scope.
/// For scalars below 4 bytes the compilers' atomics use a compare-and-swap of the enclosing word. That would write
/// neighbouring bytes, and a GPU cannot do it on host memory.
/// Source: PTX ISA 8.3, st and ld, `.relaxed.sys`.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "beeline/core/macros.hpp"

namespace beeline::machine {

/// The unsigned integer with the size of a scalar.
template <class T>
using ScalarBits =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

#if BEELINE_ON_GPU

BEELINE_HOST_DEVICE inline void store_bits(std::uint8_t* to, std::uint8_t bits) {
  asm volatile("st.relaxed.sys.u8 [%0], %1;" ::"l"(to), "r"(std::uint32_t{bits}) : "memory");
}
BEELINE_HOST_DEVICE inline void store_bits(std::uint16_t* to, std::uint16_t bits) {
  asm volatile("st.relaxed.sys.u16 [%0], %1;" ::"l"(to), "h"(bits) : "memory");
}
BEELINE_HOST_DEVICE inline void store_bits(std::uint32_t* to, std::uint32_t bits) {
  asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(to), "r"(bits) : "memory");
}
BEELINE_HOST_DEVICE inline void store_bits(std::uint64_t* to, std::uint64_t bits) {
  asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(to), "l"(bits) : "memory");
}
BEELINE_HOST_DEVICE inline std::uint8_t load_bits(const std::uint8_t* from) {
  std::uint32_t bits;
  asm volatile("ld.relaxed.sys.u8 %0, [%1];" : "=r"(bits) : "l"(from) : "memory");
  return static_cast<std::uint8_t>(bits);
}
BEELINE_HOST_DEVICE inline std::uint16_t load_bits(const std::uint16_t* from) {
  std::uint16_t bits;
  asm volatile("ld.relaxed.sys.u16 %0, [%1];" : "=h"(bits) : "l"(from) : "memory");
  return bits;
}
BEELINE_HOST_DEVICE inline std::uint32_t load_bits(const std::uint32_t* from) {
  std::uint32_t bits;
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(bits) : "l"(from) : "memory");
  return bits;
}
BEELINE_HOST_DEVICE inline std::uint64_t load_bits(const std::uint64_t* from) {
  std::uint64_t bits;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(bits) : "l"(from) : "memory");
  return bits;
}

#else

template <class Bits>
BEELINE_HOST_DEVICE void store_bits(Bits* to, Bits bits) {
  __atomic_store_n(to, bits, __ATOMIC_RELAXED);
}
template <class Bits>
BEELINE_HOST_DEVICE Bits load_bits(const Bits* from) {
  return __atomic_load_n(from, __ATOMIC_RELAXED);
}

#endif

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE ScalarBits<T> bits_of(T value) {
  ScalarBits<T> bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
template <class T>
BEELINE_HOST_DEVICE void store_scalar(T* to, T value) {
  store_bits(reinterpret_cast<ScalarBits<T>*>(to), bits_of(value));
}
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE T load_scalar(const T* from) {
  const ScalarBits<T> bits = load_bits(reinterpret_cast<const ScalarBits<T>*>(from));
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace beeline::machine
