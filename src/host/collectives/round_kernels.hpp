// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Kernels before and after copies by engines: a handshake of the members, and the reduction of arrived data.

#include "host/collectives/engine_chunk.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

/// Begins a call: members compare where its vectors lie; then everyone's are there for the others to write. Vectors
/// that do not lie alike end the team with a record that says so: nothing has been touched. Members whose vectors may
/// lie anywhere pass null pointers. A call of no elements is all of it.
void launch_handshake(const ChannelLaunch& on, const CallDescription& call, const void* destination,
                      const void* source);

/// Everything that members did is visible to all.
void launch_round(const ChannelLaunch& on);

/// Results of a chunk that the other members have copied to this one's scratch memory.
struct EngineResults {
  std::byte* destination;  ///< the whole vector's, of `count` elements
  const std::byte* scratch;
  std::size_t count, element_bytes;
  EngineChunk chunk;
};

/// Copies them to the destination by threads, and leaves the engines to what crosses the link. Nothing is touched where
/// the team has failed, as when its members' calls were found to differ.
void launch_take(Team& team, const LaunchOptions& options, const EngineResults& results);

}  // namespace beeline::detail
