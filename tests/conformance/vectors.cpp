// SPDX-License-Identifier: Apache-2.0
// Built without sanitizers: see beeline_test_data().
#include "tests/conformance/vectors.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace beeline_test {

using beeline::ElementType;
using beeline::Reduction;

namespace {

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

/// The 16-bit float of an exactly representable number: by the format's definition, not by the library's conversion.
std::uint16_t exact_float16(double number, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int sign = std::signbit(number) ? 0x8000 : 0, infinite = (2 * bias + 1) << mantissa_bits;
  double mantissa = std::abs(number);
  if (!std::isfinite(number))
    return static_cast<std::uint16_t>(sign | infinite | (std::isnan(number) ? 1 << (mantissa_bits - 1) : 0));
  if (number == 0) return static_cast<std::uint16_t>(sign);
  int exponent = 0;
  for (; mantissa >= 2; mantissa /= 2) ++exponent;
  for (; mantissa < 1; mantissa *= 2) --exponent;
  const auto fraction = static_cast<int>((mantissa - 1) * (1 << mantissa_bits));
  return static_cast<std::uint16_t>(sign | (exponent + bias) << mantissa_bits | fraction);
}

/// Writes `numerator` / `denominator`, which the type represents exactly; integers are rounded towards zero.
void write_number(std::byte* to, ElementType type, std::int64_t numerator, std::int64_t denominator) {
  switch (type) {
    case ElementType::int32:
      return store(to, static_cast<std::int32_t>(numerator / denominator));
    case ElementType::int64:
      return store(to, numerator / denominator);
    case ElementType::uint8:
      return store(to, static_cast<std::uint8_t>(numerator / denominator));
    case ElementType::uint32:
      return store(to, static_cast<std::uint32_t>(numerator / denominator));
    case ElementType::uint64:
      return store(to, static_cast<std::uint64_t>(numerator / denominator));
    default:
      return write_float(to, type, static_cast<double>(numerator) / static_cast<double>(denominator));
  }
}

std::int64_t combine(Reduction reduction, std::int64_t a, std::int64_t b) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::average:
      return a + b;
    case Reduction::product:
      return a * b;
    case Reduction::minimum:
      return std::min(a, b);
    case Reduction::maximum:
      return std::max(a, b);
    case Reduction::bit_and:
      return a & b;
    case Reduction::bit_or:
      return a | b;
    case Reduction::bit_xor:
      return a ^ b;
  }
  return 0;
}

/// Element `index` of `rank`'s vector, as a number.
std::int64_t element_of(const VectorKey& key, int rank, std::size_t index) {
  const std::uint64_t mixed = (index + 31 * key.round + 17 * static_cast<std::uint64_t>(rank)) * 0x9e3779b97f4a7c15u;
  const auto few = static_cast<std::int64_t>(mixed >> 61);  // 0 to 7
  const bool is_unsigned = key.type >= ElementType::uint8 && key.type <= ElementType::uint64;
  const bool is_signed = !is_unsigned && !beeline::is_bitwise(key.reduction);
  switch (key.reduction) {
    case Reduction::product:  // at most one rank in seven doubles: 64 ranks stay below 2^10
      return (index + key.round + static_cast<std::uint64_t>(rank)) % 7 == 0 ? 2 : 1;
    case Reduction::average:  // the same on all ranks, so that any number of ranks divides the sum
      return static_cast<std::int64_t>((index + key.round) % 4);
    case Reduction::sum:
      return is_signed ? few % 4 - 1 : few % 4;
    default:
      return is_signed ? few - 3 : static_cast<std::int64_t>(mixed >> 57);
  }
}

}  // namespace

void write_float(std::byte* to, ElementType type, double number) {
  switch (type) {
    case ElementType::float32:
      return store(to, static_cast<float>(number));
    case ElementType::float16:
      return store(to, exact_float16(number, 5));
    case ElementType::bfloat16:
      return store(to, exact_float16(number, 8));
    default:
      return store(to, number);
  }
}

void fill_reduced(std::byte* to, const VectorKey& key, const int* ranks, std::size_t size, std::size_t count) {
  const std::size_t bytes = beeline::bytes_of(key.type);
  const auto divisor = static_cast<std::int64_t>(key.reduction == Reduction::average ? size : 1);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t whole = element_of(key, ranks[0], i);
    for (std::size_t k = 1; k < size; ++k) whole = combine(key.reduction, whole, element_of(key, ranks[k], i));
    write_number(to + i * bytes, key.type, whole, divisor);
  }
}

}  // namespace beeline_test
