// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The smallest launch.

#include "beeline/host/world.hpp"

namespace beeline::bench {

/// Launches a grid of `blocks` blocks that may wait and that does nothing.
void launch_empty_grid(World& world, unsigned blocks);

}  // namespace beeline::bench
