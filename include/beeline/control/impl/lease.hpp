// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The lease of a grid that ends by itself, and that the host starts again when the grid has work
/// (host/leased_grid.hpp).

#include <cstdint>

#include "beeline/core/macros.hpp"
#include "beeline/device/wait.hpp"

namespace beeline {

struct Lease {
  std::uint64_t* wanted;      ///< in host memory: set when there is work and no lease runs
  std::uint64_t asleep_mark;  ///< value of `asleep` words while no lease runs, by which CPU threads wake the host's
                              ///< thread
  std::uint64_t lease_ns;     ///< longest duration of a lease
  std::uint64_t idle_ns;      ///< time without work after which a lease ends

  /// Requests a lease. Called by a thread that finds the mark, or that has work left at the end of a lease.
  BEELINE_HOST_DEVICE void ask() const {
    detail::SystemAtomic<std::uint64_t>(*wanted).store(1, std::memory_order_release);
  }
};

}  // namespace beeline
