// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A kernel of one warp before the grid of a call that is overlapped with other kernels: it ends when all members have
/// reached the call. A grid that waits for a late member instead would take multiprocessors from those kernels; in a
/// training step, where members come at different times, all-reduces of 128 blocks made matrix products beside them
/// take three times as long.
///
///   rank 0   compute ──────── one warp waits ─────── grid     rank 1   compute ─────────────────── one warp, grid
///
/// Members need not agree on it: who has begun the call shows that in its session's state, and the kernel writes there
/// that its member has come; where numbers of calls have wrapped an old one may look like a later one, and a grid
/// starts early. It decides nothing: when its patience ends, or the team has failed, the grid goes on, whose waits have
/// the deadlines, the comparison of calls and the errors.

#include "host/collectives/launchers.hpp"

namespace beeline::detail {

/// Launches it on the stream of the options, before the next call on the channel.
void launch_arrival(const ChannelLaunch& on);

}  // namespace beeline::detail
