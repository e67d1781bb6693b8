// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Kernels before and after the work of engines: a handshake of the members, waits for them, and the reduction of
/// arrived data.

#include "host/collectives/engine_chunk.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

/// Waits until the engine has completed all operations that this rank's kernels have posted.
void launch_quiet(Team& team, const LaunchOptions& options);

/// Begins a call: members compare the offsets of its vectors; then each may write to the vectors of the others. If the
/// offsets differ, the team fails with a record of the difference, and no memory has been touched. Members whose
/// vectors need not be symmetric pass null pointers. A call of no elements consists of the handshake alone.
void launch_handshake(const ChannelLaunch& on, const CallDescription& call, const void* destination,
                      const void* source);

/// After this handshake everything that members did before is visible to all members.
void launch_round(const ChannelLaunch& on);

/// Results of a chunk that the other members have copied to this member's scratch memory.
struct EngineResults {
  std::byte* destination;  ///< the whole vector, of `count` elements
  const std::byte* scratch;
  std::size_t count, element_bytes;
  EngineChunk chunk;
};

/// Copies the results to the destination by threads, so that engines copy only over the link. Touches nothing if the
/// team has failed, for example because its members' calls differ.
void launch_take(Team& team, const LaunchOptions& options, const EngineResults& results);

}  // namespace beeline::detail
