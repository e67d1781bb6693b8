// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Vectors whose reductions are exact in every element type, and what must come out of them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "beeline/collectives/reduction.hpp"

namespace beeline_test {

/// What a vector holds: small numbers, so that sums, products and averages of up to 64 ranks are exact.
struct VectorKey {
  beeline::ElementType type;
  beeline::Reduction reduction;
  std::uint64_t round;  ///< other data in each
};

/// Appends an element of a float type, which holds the number exactly: zeros have a sign, infinities and NaNs are kept.
void append_float(std::vector<std::byte>& bytes, beeline::ElementType type, double number);
/// Element `index` of `rank`'s vector, as a number.
[[nodiscard]] std::int64_t element_of(const VectorKey& key, int rank, std::size_t index);
/// The vector's bytes.
[[nodiscard]] std::vector<std::byte> vector_of(const VectorKey& key, int rank, std::size_t count);
/// The bytes of the combination of all `ranks` vectors, computed in integers.
[[nodiscard]] std::vector<std::byte> reduced_vector(const VectorKey& key, const std::vector<int>& ranks,
                                                    std::size_t count);

}  // namespace beeline_test
