// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The room that is reserved for a grid of few blocks on a rank's GPU.

#include "beeline/host/launch.hpp"
#include "runtime/residency.hpp"

namespace beeline {

/// The room of `blocks` blocks of `threads` threads each. Throws no_resource if not even one fits the GPU.
template <class Kernel, class... Args>
[[nodiscard]] ReservedRoom room_of_grid(World& world, unsigned threads, unsigned blocks) {
  return room_for(blocks, detail::blocks_of_multiprocessor<Kernel, Args...>(world, threads),
                  world.device().multiprocessors);
}

}  // namespace beeline
