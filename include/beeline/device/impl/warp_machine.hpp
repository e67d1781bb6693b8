// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations of warps, in addition to machine.hpp.

#include <cstdint>

#include "beeline/device/impl/machine.hpp"

namespace beeline::machine {

#if BEELINE_ON_GPU
/// The `value` of thread `lane` of the calling warp.
BEELINE_HOST_DEVICE inline std::uint64_t from_lane(std::uint64_t value, unsigned lane) {
  return __shfl_sync(0xffffffffu, value, static_cast<int>(lane));
}
/// The first thread of the calling warp whose `mine` is true; at least one must be.
BEELINE_HOST_DEVICE inline unsigned first_lane(bool mine) {
  return static_cast<unsigned>(__ffs(static_cast<int>(__ballot_sync(0xffffffffu, mine))) - 1);
}
/// One bit for each thread of the calling warp: its `mine`.
BEELINE_HOST_DEVICE inline std::uint32_t ballot(bool mine) { return __ballot_sync(0xffffffffu, mine); }
#else
BEELINE_HOST_DEVICE inline std::uint64_t from_lane(std::uint64_t, unsigned) { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline unsigned first_lane(bool) { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline std::uint32_t ballot(bool) { not_on_a_cpu(); }
#endif

}  // namespace beeline::machine
