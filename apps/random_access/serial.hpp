// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The serial reference: one loop over the stream, without code of the methods but the stream itself.

#include <cstdint>
#include <vector>

#include "problem.hpp"

namespace random_access {

/// The table after the updates `run` of all ranks, from T[i] = i.
[[nodiscard]] std::vector<std::uint64_t> serial_table(const Layout& layout, const Run& run);

}  // namespace random_access
