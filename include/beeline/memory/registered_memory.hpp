// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Existing memory of a program, registered with the world, and addressed by rank and offset.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/memory/segment.hpp"

namespace beeline {

/// One rank's part, as the calling rank reaches it. Source: GASPI segments from existing memory (seed 000, 4.3).
struct RegisteredPart {
  MemoryKind kind = MemoryKind::host;  ///< device or host
  std::size_t bytes = 0;               ///< 0: this rank has no part
  /// Address in this process, for loads and stores of this rank's device; nullptr if loads and stores do not reach the
  /// part.
  std::byte* address = nullptr;
  bool copies = false;       ///< whether `World::copy` reaches the part
  std::string not_directly;  ///< why `address` is nullptr and, if `copies` is false, why copies do not reach the part
                             ///< either
};

/// The result of `World::register_memory`. The addresses of the parts are not symmetric.
struct RegisteredMemory {
  std::uint32_t id = 0;  ///< the same on every rank
  /// In a world on several nodes: the symmetric address by which operations of kernels and CPU threads (put, get,
  /// signal, atomics) name the first byte of a part of a rank on another node. CPU threads and checked kernels
  /// refuse ranks of the own node: nothing is mapped there. nullptr in other worlds.
  std::byte* alias = nullptr;
  std::vector<RegisteredPart> parts;  ///< [ranks]
};

/// A position in registered memory, with the same meaning on every rank.
struct RegisteredPlace {
  std::uint32_t id;
  int rank;
  std::size_t offset;  ///< bytes from the start of the rank's part
};

}  // namespace beeline
