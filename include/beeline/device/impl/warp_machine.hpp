// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What warps can do, beside machine.hpp.

#include <cstdint>

#include "beeline/device/impl/machine.hpp"

namespace beeline::machine {

#if BEELINE_ON_GPU
/// The value that thread `lane` of the calling warp has.
BEELINE_HOST_DEVICE inline std::uint64_t from_lane(std::uint64_t value, unsigned lane) {
  return __shfl_sync(0xffffffffu, value, static_cast<int>(lane));
}
/// The first thread of the calling warp whose `mine` holds; one does.
BEELINE_HOST_DEVICE inline unsigned first_lane(bool mine) {
  return static_cast<unsigned>(__ffs(static_cast<int>(__ballot_sync(0xffffffffu, mine))) - 1);
}
/// Whose `mine` holds, bit by thread of the calling warp.
BEELINE_HOST_DEVICE inline std::uint32_t ballot(bool mine) { return __ballot_sync(0xffffffffu, mine); }
#else
BEELINE_HOST_DEVICE inline std::uint64_t from_lane(std::uint64_t, unsigned) { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline unsigned first_lane(bool) { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline std::uint32_t ballot(bool) { not_on_a_cpu(); }
#endif

}  // namespace beeline::machine
