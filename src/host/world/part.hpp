// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The parts of a world, one by one: a file includes this and the part that it uses.

namespace beeline {

class World;

/// A part of a world: Membership, Teams, MemoryMap, Routes, Failures, Contexts, Engines, Grids, Streams or Launches.
template <class Part>
[[nodiscard]] Part& world_part(const World& world);

}  // namespace beeline
