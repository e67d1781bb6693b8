// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The reductions of collectives, and their numerical properties.
///
/// Elements are combined in the order of ranks, or by `Algorithm::tree` in a fixed order of pairs. So every rank gets
/// the same bits, in every run, whichever rank computes them. 16-bit floats are combined in float32 and rounded once,
/// at the end. Integers are combined in 64 bits (8-bit integers in 32), of which the low bits are kept. An average is
/// the sum divided by the number of ranks; integer averages round towards zero. Floats follow IEEE 754: infinities and
/// NaNs propagate, and a result that is too large becomes an infinity. The minimum and the maximum of a NaN and any
/// other value are a NaN; the minimum and the maximum of two zeros are the zero of the lower rank. If a result is a NaN
/// on one rank, it is a NaN on every rank, but its sign and payload are unspecified.

#include <cstdint>
#include <type_traits>

#include "beeline/collectives/elements.hpp"

namespace beeline {

/// How elements are combined. The bitwise reductions are for integers only.
enum class Reduction : std::uint32_t { sum, product, minimum, maximum, average, bit_and, bit_or, bit_xor };
/// Whether the reduction is a sum or is computed from a sum.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool adds(Reduction reduction) {
  return reduction == Reduction::sum || reduction == Reduction::average;
}
inline constexpr std::uint32_t reductions = 8;

[[nodiscard]] constexpr bool is_bitwise(Reduction reduction) { return reduction >= Reduction::bit_and; }
/// Whether the type has the reduction.
[[nodiscard]] constexpr bool has_reduction(ElementType type, Reduction reduction) {
  return static_cast<std::uint32_t>(reduction) < reductions &&
         (!is_bitwise(reduction) || (type >= ElementType::int32 && type <= ElementType::uint64));
}
/// The reduction's name as it appears in messages, in Python and in JSON.
[[nodiscard]] constexpr const char* name(Reduction reduction) {
  constexpr const char* names[] = {"sum", "product", "minimum", "maximum", "average", "bit_and", "bit_or", "bit_xor"};
  return static_cast<std::uint32_t>(reduction) < reductions ? names[static_cast<std::uint32_t>(reduction)] : "unknown";
}

namespace detail {

/// The sum of two values; integers wrap.
template <class Wide>
BEELINE_HOST_DEVICE Wide add(Wide a, Wide b) {
  if constexpr (std::is_integral_v<Wide>)
    return static_cast<Wide>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}
template <class Wide>
BEELINE_HOST_DEVICE Wide multiply(Wide a, Wide b) {
  if constexpr (std::is_integral_v<Wide>)
    return static_cast<Wide>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}
/// The minimum or maximum of two values; a NaN if either is a NaN.
template <class Wide>
BEELINE_HOST_DEVICE Wide extreme(Wide a, Wide b, bool smaller) {
  if (a != a || b != b) return add(a, b);
  return (b < a) == smaller && a != b ? b : a;
}

template <class Wide>
BEELINE_HOST_DEVICE Wide combine(Reduction reduction, Wide a, Wide b) {
  switch (reduction) {
    case Reduction::product:
      return multiply(a, b);
    case Reduction::minimum:
      return extreme(a, b, true);
    case Reduction::maximum:
      return extreme(a, b, false);
    case Reduction::bit_and:
    case Reduction::bit_or:
    case Reduction::bit_xor:
      if constexpr (std::is_integral_v<Wide>)
        return reduction == Reduction::bit_and ? (a & b) : reduction == Reduction::bit_or ? (a | b) : (a ^ b);
      [[fallthrough]];
    default:
      return add(a, b);
  }
}

/// The elements of one register word of type Word while they are combined. Tests that have the same result for all
/// elements are made once for each word.
template <class T, class Word>
struct Partial {
  static constexpr unsigned count = sizeof(Word) / sizeof(T);
  Accumulator<T> values[count] = {};

  BEELINE_HOST_DEVICE void start(const Word& word) {
    each(word, [](Accumulator<T>, Accumulator<T> element) { return element; });
  }
  BEELINE_HOST_DEVICE void combine(Reduction reduction, const Word& word) {
    if (reduction == Reduction::sum || reduction == Reduction::average)
      each(word, [](Accumulator<T> so_far, Accumulator<T> element) { return add(so_far, element); });
    else
      each(word, [reduction](Accumulator<T> so_far, Accumulator<T> element) {
        return detail::combine(reduction, so_far, element);
      });
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Word finish(Reduction reduction, std::uint32_t ranks) {
    T elements[count];
    if (reduction == Reduction::average) {
      BEELINE_UNROLL
      for (unsigned i = 0; i < count; ++i)
        values[i] = static_cast<Accumulator<T>>(values[i] / static_cast<Accumulator<T>>(ranks));
    }
    BEELINE_UNROLL
    for (unsigned i = 0; i < count; ++i) elements[i] = ElementTraits<T>::narrow(values[i]);
    Word word;
    std::memcpy(&word, elements, sizeof word);
    return word;
  }

 private:
  template <class Combine>
  BEELINE_HOST_DEVICE void each(const Word& word, const Combine& combine) {
    T elements[count];
    std::memcpy(elements, &word, sizeof word);
    BEELINE_UNROLL
    for (unsigned i = 0; i < count; ++i) values[i] = combine(values[i], ElementTraits<T>::widen(elements[i]));
  }
};

}  // namespace detail

}  // namespace beeline
