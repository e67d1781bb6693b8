// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The clock by which calls and service threads wait.

#include <chrono>
#include <cstdint>

namespace beeline::gaspi {

/// Nanoseconds of the steady clock.
[[nodiscard]] inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace beeline::gaspi
