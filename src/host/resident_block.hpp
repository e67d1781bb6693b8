// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The size of all blocks that serve rings from a rank's device, and the room on the device that is reserved for them.

#include <algorithm>

#include "host/grid_room.hpp"

namespace beeline {

/// Few threads, so that the block fits beside kernels that occupy nearly all of each multiprocessor.
inline constexpr unsigned engine_block_threads = 128;

/// The room that a block takes.
template <class Kernel, class Argument>
[[nodiscard]] ReservedRoom room_of_block(World& world) {
  static_assert(
      Kernel::max_threads >= 4 * engine_block_threads,
      "compiled for blocks that large, so that a block has at most a quarter of a multiprocessor's registers");
  if (!world.device().is_gpu())
    return {std::max(1u, static_cast<unsigned>(world.config().host_threads)) / static_cast<double>(max_host_threads)};
  return room_of_grid<Kernel, Argument>(world, engine_block_threads, 1);
}

}  // namespace beeline
