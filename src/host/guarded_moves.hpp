// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts guarded moves (control/guarded_move.hpp).

#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"
#include "control/guarded_move.hpp"

namespace beeline {

/// Blocks of a guarded move at most.
inline constexpr unsigned most_guarded_blocks = 16;

/// Enqueues one or two moves, the second behind the first.
void start_guarded_move(Team& team, Stream& stream, const StreamMove& first, const StreamMove& second,
                        const MoveGuard& guard);
/// Of the device, that guarded moves take at most: kernels that wait for them leave this room.
[[nodiscard]] double share_of_guarded_moves(World& world);

}  // namespace beeline
