// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Vectors whose reductions are exact in every element type, and the expected results.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "beeline/collectives/reduction.hpp"

namespace beeline_test {

/// Determines a vector's contents: small numbers, so that sums, products and averages of up to 64 ranks are exact.
struct VectorKey {
  beeline::ElementType type;
  beeline::Reduction reduction;
  std::uint64_t round;  ///< each round has other data
};

/// Writes an element of a float type that represents the number exactly; keeps the sign of zero, infinities and NaNs.
void write_float(std::byte* to, beeline::ElementType type, double number);
/// Writes `count` elements of the combination of the vectors of `size` ranks, computed in integers.
void fill_reduced(std::byte* to, const VectorKey& key, const int* ranks, std::size_t size, std::size_t count);

inline void append_float(std::vector<std::byte>& bytes, beeline::ElementType type, double number) {
  bytes.resize(bytes.size() + beeline::bytes_of(type));
  write_float(bytes.data() + bytes.size() - beeline::bytes_of(type), type, number);
}

/// The bytes of the combination of all `ranks` vectors.
[[nodiscard]] inline std::vector<std::byte> reduced_vector(const VectorKey& key, const std::vector<int>& ranks,
                                                           std::size_t count) {
  std::vector<std::byte> bytes(count * beeline::bytes_of(key.type));
  fill_reduced(bytes.data(), key, ranks.data(), ranks.size(), count);
  return bytes;
}

/// The bytes of a rank's vector.
[[nodiscard]] inline std::vector<std::byte> vector_of(const VectorKey& key, int rank, std::size_t count) {
  return reduced_vector(key, {rank}, count);
}

}  // namespace beeline_test
