// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which rank owns which chunk of an object that is distributed over several ranks; host code and kernels read it.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"
#include "beeline/core/macros.hpp"

namespace beeline {

/// Equal, contiguous chunks, distributed to `owner_count` ranks in turn. Source: seed 001, unified address space
/// (extended here to objects across devices); seed 000 section 6.3.
struct ChunkTable {
  /// Chunks are whole pages of this size, so that the number of chunks fits 32 bits, and the division is fast on a GPU.
  static constexpr std::uint32_t page_shift = 12;

  std::uintptr_t base;  ///< address in this process; 0: no object
  std::uint64_t bytes;
  std::uint32_t chunk_pages;
  std::uint32_t owner_count;
  std::uint16_t owners[max_node_ranks];  ///< [owner_count] world ranks: chunk c belongs to owners[c % owner_count]

  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t chunk_bytes() const { return std::size_t{chunk_pages} << page_shift; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t chunk_count() const {
    return static_cast<std::uint32_t>((bytes + chunk_bytes() - 1) / chunk_bytes());
  }
  /// World rank that owns the byte `offset` of the object; `offset` is less than `bytes`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t owner_at(std::uint64_t offset) const {
    return owners[static_cast<std::uint32_t>(offset >> page_shift) / chunk_pages % owner_count];
  }
  /// World rank that owns the byte at `address`, or `no_peer` outside the object.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t owner_of(const void* address) const {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - base;
    return offset < bytes ? owner_at(offset) : no_peer;
  }
};
static_assert(std::is_trivially_copyable_v<ChunkTable> && sizeof(ChunkTable) == 152);

}  // namespace beeline
