// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The serial reference: a loop over ranks and elements, sharing no code with the schemes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ring_reduction {

/// The vector that every rank of `ranks` holds after `reductions` reductions of data set `set`, one on the result of
/// the other. Exact up to `exact_reductions(ranks)`; threads only finish sooner.
[[nodiscard]] std::vector<float> serial_reduction(std::size_t count, int ranks, std::uint32_t set, int reductions,
                                                  int threads);

/// FNV-1a over the bits of a vector: equal vectors have equal checksums.
[[nodiscard]] std::uint64_t checksum(const std::vector<float>& values);

/// Largest absolute difference of two vectors of the same length; infinite where one is not a number.
[[nodiscard]] double max_error(const std::vector<float>& expected, const std::vector<float>& observed);

}  // namespace ring_reduction
