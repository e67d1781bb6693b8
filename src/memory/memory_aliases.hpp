// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Aliases: offsets in a rank's slot that stand for memory of the rank elsewhere. By them commands of ranks on other
/// nodes name registered memory and the chunks of distributed arrays.

#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>

#include "beeline/core/layout.hpp"
#include "beeline/memory/chunk_table.hpp"
#include "memory/offset_allocator.hpp"

namespace beeline {

/// The memory that an alias stands for on one rank.
struct AliasedPart {
  std::uint32_t owner = no_peer;  ///< world rank
  std::byte* start = nullptr;     ///< in this process
  std::size_t bytes = 0;
};

/// The aliases that one rank knows, in a world on several nodes. They are in the quarter of each slot that is otherwise
/// unused, at the same offset in every slot: all ranks open and close the same aliases in the same order. One thread at
/// a time opens and closes aliases; any thread may call `find`.
class MemoryAliases {
 public:
  ///   is_used  whether ranks are on several nodes; if not, nothing is opened
  MemoryAliases(SlotLayout slot, bool is_used) : slot_(slot), is_used_(is_used), offsets_(slot.quarter(), alignment) {}

  [[nodiscard]] bool is_used() const { return is_used_; }
  /// Whether an offset in a slot is in the quarter for aliases.
  [[nodiscard]] static bool may_hold(SlotLayout slot, std::uint64_t offset) {
    return offset - slot.half() < slot.quarter();
  }

  /// Opens an alias of up to `bytes` of memory on each rank. Returns the alias's offset. Throws no_resource.
  [[nodiscard]] std::uint64_t open(std::size_t bytes, const AliasedPart& part);
  /// Opens an alias of an array: each owner's chunks are consecutive. Throws no_resource.
  void open(const ChunkTable& array);
  void close(std::uint64_t offset);
  void close_array(std::uintptr_t base);

  /// The address in this process for which an offset in the slot of `rank` stands; nullptr if it stands for none.
  [[nodiscard]] std::byte* find(std::uint32_t rank, std::uint64_t offset) const;
  /// The offset in its owner's slot that stands for an address in an array; 0 if there is none.
  [[nodiscard]] std::uint64_t offset_in_array(const void* address) const;

  /// Used when ranks agree on their offsets after a failure.
  [[nodiscard]] OffsetAllocator& offsets() { return offsets_; }

 private:
  static constexpr std::size_t alignment = std::size_t{64} << 10;
  struct Alias {
    AliasedPart part;
    ChunkTable array;  ///< base 0: the alias stands for `part`
  };

  const SlotLayout slot_;
  const bool is_used_;
  mutable std::shared_mutex mutex_;
  OffsetAllocator offsets_;                 ///< from the start of the quarter
  std::map<std::uint64_t, Alias> aliases_;  ///< by their offsets in a slot
};

}  // namespace beeline
