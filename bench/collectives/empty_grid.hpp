// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The least that a launch can do.

#include "beeline/host/world.hpp"

namespace beeline::bench {

/// A grid of so many blocks that may wait, and does nothing.
void launch_empty_grid(World& world, unsigned blocks);

}  // namespace beeline::bench
