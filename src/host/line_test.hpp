// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tests whether lines of 128 bytes arrive whole.

#include <cstdint>
#include <vector>

#include "beeline/host/team.hpp"

namespace beeline::detail {

/// Counts by one rank that polls lines which a peer stores.
struct LinesSeen {
  std::uint64_t looks, torn;
};

/// Collective, among GPU ranks. Returns this rank's counts for each sender, by rank of the team.
[[nodiscard]] std::vector<LinesSeen> watch_lines(Team& team);

}  // namespace beeline::detail
