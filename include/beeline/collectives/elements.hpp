// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Element types of collectives, and the arithmetic in which elements of each type are combined.

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/impl/half_machine.hpp"
#include "beeline/core/macros.hpp"

namespace beeline {

/// The type of a vector's elements.
enum class ElementType : std::uint32_t { float32, float64, float16, bfloat16, int32, int64, uint8, uint32, uint64 };
inline constexpr std::uint32_t element_types = 9;

/// The bits of an IEEE 754 binary16, with the layout of `__half` and `torch.float16`.
struct Float16 {
  std::uint16_t bits;
};
/// The upper half of the bits of a binary32, with the layout of `__nv_bfloat16` and `torch.bfloat16`.
struct BFloat16 {
  std::uint16_t bits;
};

[[nodiscard]] constexpr std::size_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::float64:
    case ElementType::int64:
    case ElementType::uint64:
      return 8;
    case ElementType::float32:
    case ElementType::int32:
    case ElementType::uint32:
      return 4;
    case ElementType::float16:
    case ElementType::bfloat16:
      return 2;
    case ElementType::uint8:
      return 1;
  }
  return 0;
}

/// The type's name as it appears in messages, in Python and in JSON.
[[nodiscard]] constexpr const char* name(ElementType type) {
  constexpr const char* names[] = {"float32", "float64", "float16", "bfloat16", "int32",
                                   "int64",   "uint8",   "uint32",  "uint64"};
  return static_cast<std::uint32_t>(type) < element_types ? names[static_cast<std::uint32_t>(type)] : "unknown";
}

namespace detail {

/// `Accumulator` is the type in which elements of T are combined; `widen` and `narrow` convert. Narrowing rounds floats
/// to nearest, ties to even; integers keep their low bits.
template <class T>
struct ElementTraits;

template <class T, class Wide, ElementType element>
struct PlainElement {
  using Accumulator = Wide;
  static constexpr ElementType type = element;
  [[nodiscard]] BEELINE_HOST_DEVICE static Wide widen(T value) { return static_cast<Wide>(value); }
  [[nodiscard]] BEELINE_HOST_DEVICE static T narrow(Wide value) { return static_cast<T>(value); }
};

template <>
struct ElementTraits<float> : PlainElement<float, float, ElementType::float32> {};
template <>
struct ElementTraits<double> : PlainElement<double, double, ElementType::float64> {};
template <>
struct ElementTraits<std::int32_t> : PlainElement<std::int32_t, std::int64_t, ElementType::int32> {};
template <>
struct ElementTraits<std::int64_t> : PlainElement<std::int64_t, std::int64_t, ElementType::int64> {};
template <>
struct ElementTraits<std::uint8_t> : PlainElement<std::uint8_t, std::uint32_t, ElementType::uint8> {};
template <>
struct ElementTraits<std::uint32_t> : PlainElement<std::uint32_t, std::uint64_t, ElementType::uint32> {};
template <>
struct ElementTraits<std::uint64_t> : PlainElement<std::uint64_t, std::uint64_t, ElementType::uint64> {};

template <>
struct ElementTraits<Float16> {
  using Accumulator = float;
  static constexpr ElementType type = ElementType::float16;
  [[nodiscard]] BEELINE_HOST_DEVICE static float widen(Float16 value) { return machine::from_half(value.bits); }
  [[nodiscard]] BEELINE_HOST_DEVICE static Float16 narrow(float value) { return {machine::to_half(value)}; }
};
template <>
struct ElementTraits<BFloat16> {
  using Accumulator = float;
  static constexpr ElementType type = ElementType::bfloat16;
  [[nodiscard]] BEELINE_HOST_DEVICE static float widen(BFloat16 value) { return machine::from_bfloat(value.bits); }
  [[nodiscard]] BEELINE_HOST_DEVICE static BFloat16 narrow(float value) { return {machine::to_bfloat(value)}; }
};

template <class T>
concept Reducible = requires {
  ElementTraits<T>::type;
};

template <class T>
using Accumulator = typename ElementTraits<T>::Accumulator;

}  // namespace detail

}  // namespace beeline
