// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Access to single parts of a world. A file includes this header and the header of the part that it uses.

namespace beeline {

class World;

/// A part of a world: Membership, Teams, MemoryMap, Routes, Failures, Contexts, Engines, Grids, Streams or Launches.
template <class Part>
[[nodiscard]] Part& world_part(const World& world);

}  // namespace beeline
