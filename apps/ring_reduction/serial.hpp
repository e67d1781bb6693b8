// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The serial reference: a loop over ranks and elements, sharing no code with the schemes.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/reference.hpp"

namespace ring_reduction {

/// The vector that every rank of `ranks` holds after `reductions` reductions of data set `set`, one on the result of
/// the other. Exact up to `exact_reductions(ranks)`; threads only finish sooner.
[[nodiscard]] std::vector<float> serial_reduction(std::size_t count, int ranks, std::uint32_t set, int reductions,
                                                  int threads);

using apps::checksum;
using apps::max_error;

}  // namespace ring_reduction
