// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Segments: memory registered for communication. Sizes and kinds may differ from rank to rank.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace beeline {

/// The kind of memory. `device`: GPU memory on a GPU rank. `pinned`: host memory that GPUs also reach. `host`: host
/// memory; at present registered like `pinned` if the world has GPUs.
enum class MemoryKind : std::uint32_t { device, pinned, host };

/// One rank's part of a segment, at the same address in every process of the node.
struct SegmentPart {
  MemoryKind kind = MemoryKind::host;
  std::size_t bytes = 0;         ///< usable bytes; 0: this rank has no part
  std::byte* address = nullptr;  ///< address in the owner's slot of the address range; nullptr without a part
};

/// A segment: an id, and a part for each rank that has one.
struct Segment {
  std::uint32_t id = 0;
  std::vector<SegmentPart> parts;  ///< [ranks]
};

}  // namespace beeline
