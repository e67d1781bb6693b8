// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory that a program had before it told the world of it: addressed by rank and offset.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/memory/segment.hpp"

namespace beeline {

/// One rank's part, as the rank that asks reaches it. Source: GASPI segments from existing memory (seed 000, 4.3).
struct RegisteredPart {
  MemoryKind kind = MemoryKind::host;  ///< device or host
  std::size_t bytes = 0;               ///< 0: this rank has no part
  /// In this process, for loads and stores from this rank's device; nullptr where only copies reach it, or nothing.
  std::byte* address = nullptr;
  bool copies = false;       ///< whether `World::copy` reaches it
  std::string not_directly;  ///< why `address` is nullptr, and, where `copies` is false, why not even copies
};

/// What `World::register_memory` gives; its parts lie anywhere.
struct RegisteredMemory {
  std::uint32_t id = 0;               ///< the same on every rank
  std::vector<RegisteredPart> parts;  ///< [ranks]
};

/// A place in registered memory that means the same on every rank.
struct RegisteredPlace {
  std::uint32_t id;
  int rank;
  std::size_t offset;  ///< bytes from the start of the rank's part
};

}  // namespace beeline
