// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The serial reference: a loop over ranks and elements, without code shared with the schemes.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/reference.hpp"

namespace ring_reduction {

/// The vector that every rank of `ranks` holds after `reductions` reductions of data set `set`, each applied to the
/// result of the previous one. Exact up to `exact_reductions(ranks)`; threads only speed it up.
[[nodiscard]] std::vector<float> serial_reduction(std::size_t count, int ranks, std::uint32_t set, int reductions,
                                                  int threads);

using apps::checksum;
using apps::max_error;

}  // namespace ring_reduction
