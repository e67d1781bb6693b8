// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether lines of 128 bytes arrive whole, seen by trying.

#include <cstdint>
#include <vector>

#include "beeline/host/team.hpp"

namespace beeline::detail {

/// What one rank saw of the lines that another stored.
struct LinesSeen {
  std::uint64_t looks, torn;
};

/// Collective, among GPU ranks. By sender, a rank of the team.
[[nodiscard]] std::vector<LinesSeen> watch_lines(Team& team);

}  // namespace beeline::detail
