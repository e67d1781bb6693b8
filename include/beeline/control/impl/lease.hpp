// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a grid is told that ends by itself, and that the host starts again when there is work for it
/// (host/leased_grid.hpp).

#include <cstdint>

#include "beeline/core/macros.hpp"
#include "beeline/device/wait.hpp"

namespace beeline {

struct Lease {
  std::uint64_t* wanted;      ///< in host memory: set when there is work, and no lease
  std::uint64_t asleep_mark;  ///< of words that say that no lease runs: what a CPU thread wakes the host's thread by
  std::uint64_t lease_ns;     ///< so long a lease lasts at most
  std::uint64_t idle_ns;      ///< so long it looks for work

  /// Called by a thread that finds the mark, or that has work left at the end of a lease.
  BEELINE_HOST_DEVICE void ask() const {
    detail::SystemAtomic<std::uint64_t>(*wanted).store(1, std::memory_order_release);
  }
};

}  // namespace beeline
