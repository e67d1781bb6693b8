// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Kernels of one block around copies by engines: the members meet before and after.

#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/operation.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/world.hpp"

namespace beeline::detail {

/// Members compare the call, on channels that check, and where its vectors lie; then everyone's are there for the
/// others to write. Vectors that do not lie alike end the team with a record that says so: nothing has been touched.
/// Members whose vectors may lie anywhere pass null pointers.
void launch_meeting(World& world, const LaunchOptions& options, const CollectiveChannel& channel,
                    const CallSignature& call, const void* destination, const void* source);

/// Everything that members did is visible to all.
void launch_round(World& world, const LaunchOptions& options, const CollectiveChannel& channel);

}  // namespace beeline::detail
