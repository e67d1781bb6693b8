// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The state of each rank, as known to one rank.

#include <cstdint>
#include <string>

namespace beeline {

enum class RankState : std::uint32_t {
  healthy,
  failed,  ///< it died, gave up, or did not answer when the other ranks agreed on the remaining ranks
  left     ///< it has left the world in good order
};

/// The state's name as it appears in messages.
[[nodiscard]] const char* name(RankState state) noexcept;

/// One entry of a world's health. Source: GASPI's error vector (seed 000, section 3.4).
struct RankHealth {
  RankState state = RankState::healthy;
  int noticed_by = -1;  ///< of a failed rank: the rank that noticed the failure, or the failed rank itself if it gave
                        ///< up; -1: the launcher
  std::string reason;   ///< of a failed rank: one line
};

}  // namespace beeline
