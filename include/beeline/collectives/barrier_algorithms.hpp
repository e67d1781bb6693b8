// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The barriers of a team by name.

#include <cstdint>

#include "beeline/core/macros.hpp"

namespace beeline {

/// How members meet.
enum class BarrierAlgorithm : std::uint32_t {
  alltoall,       ///< each tells all: one step
  flat,           ///< all check in with member 0, who checks all out: two steps, fewest words (000, 6.7)
  dissemination,  ///< in step k each tells the member 2^k behind it: log2 steps of one word each
  hierarchical    ///< the blocks of each grid first, then the members as in alltoall (000, 6.7.1)
};
inline constexpr std::uint32_t barrier_algorithms = 4;

/// The algorithm's name as it appears in messages, in Python and in JSON.
[[nodiscard]] constexpr const char* name(BarrierAlgorithm algorithm) {
  constexpr const char* names[] = {"alltoall", "flat", "dissemination", "hierarchical"};
  return static_cast<std::uint32_t>(algorithm) < barrier_algorithms ? names[static_cast<std::uint32_t>(algorithm)]
                                                                    : "unknown";
}

}  // namespace beeline
