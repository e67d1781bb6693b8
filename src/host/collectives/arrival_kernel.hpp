// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A kernel of one warp before the grid of a call that is overlapped with other kernels. It ends when all members have
/// reached the call. A grid that waited for a late member itself would take multiprocessors from those kernels: in a
/// training step, where members arrive at different times, all-reduces of 128 blocks tripled the time of concurrent
/// matrix products.
///
///   rank 0   compute ──────── one warp waits ─────── grid     rank 1   compute ─────────────────── one warp, grid
///
/// Members need not agree on using this kernel. It writes its member's arrival to the state of the session; a member
/// without the kernel shows its arrival there when its call begins. After the numbers of calls have wrapped, an old
/// number may look like a later one, and a grid starts early. This is harmless: the kernel is only a hint. When its
/// time limit ends, or the team has failed, the grid starts, whose own waits have the deadlines, the comparison of
/// calls and the errors.

#include "host/collectives/launchers.hpp"

namespace beeline::detail {

/// Launches the kernel on the stream of the options, before the next call on the channel.
void launch_arrival(const ChannelLaunch& on);

}  // namespace beeline::detail
