// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts guarded moves (control/guarded_move.hpp).

#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"
#include "control/guarded_move.hpp"
#include "runtime/residency.hpp"

namespace beeline {

/// Largest number of blocks of a guarded move.
inline constexpr unsigned most_guarded_blocks = 16;

/// Enqueues one or two moves; the second starts after the first.
void start_guarded_move(Team& team, Stream& stream, const StreamMove& first, const StreamMove& second,
                        const MoveGuard& guard);
/// The room on the device that guarded moves take: kernels that wait for guarded moves leave it free.
[[nodiscard]] ReservedRoom room_of_guarded_moves(World& world);

}  // namespace beeline
