// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Objects that are distributed over several ranks behind one pointer: their addresses, and the mapping of their
/// chunks.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "beeline/memory/address_map.hpp"
#include "beeline/memory/segment.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "memory/memory_aliases.hpp"
#include "memory/node_memory.hpp"

namespace beeline {

/// A rank's arguments, which must be the same on all ranks.
struct DistributedRequest {
  std::size_t bytes = 0;
  std::size_t chunk_bytes = 0;  ///< 0: one equal chunk for each rank
  MemoryKind kind = MemoryKind::device;
};

/// Owned by one rank's world.
class DistributedMemory {
 public:
  DistributedMemory(Bootstrap& bootstrap, AddressRange& range, MemoryAliases& aliases,
                    std::vector<MemoryMember> members, std::int64_t deadline_ns)
      : bootstrap_(bootstrap), range_(range), aliases_(aliases), members_(std::move(members)),
        deadline_ns_(deadline_ns) {}

  /// Collective. Throws the same error on all ranks: invalid_argument (0 bytes, different arguments, too many chunks),
  /// no_resource (no free addresses, no memory), unavailable (too many ranks). Device memory is not zeroed. Chunks of
  /// ranks on other nodes are not mapped; they have aliases.
  [[nodiscard]] ChunkTable create(const DistributedRequest& request);
  /// Collective. Throws invalid_argument if ranks free different arrays, or an array that does not exist.
  void free(std::uintptr_t base);
  /// This rank's arrays, by place: a unit of `place_bytes()` in the addresses for arrays.
  [[nodiscard]] const std::map<std::uint32_t, ChunkTable>& arrays() const { return arrays_; }
  [[nodiscard]] std::uint32_t place_of(std::uintptr_t base) const;
  [[nodiscard]] std::size_t place_bytes() const { return range_.layout().slot_bytes() * array_slots / array_places; }

 private:
  using Places = std::bitset<array_places>;

  /// A chunk of an array: its address and its owner.
  struct Chunk {
    std::byte* address;
    std::size_t bytes;
    int owner;
    std::size_t offset;  ///< offset in the owner's memory
    bool device;
  };
  /// The values that ranks exchange before an array is made.
  struct Proposal {
    DistributedRequest request;
    std::uint8_t calls = 0;  ///< 0: the rank has failed or left
    Places used;
  };
  [[nodiscard]] std::vector<Proposal> exchange(const DistributedRequest& request);
  [[nodiscard]] std::uint32_t find_place(const std::vector<Proposal>& all, std::size_t bytes) const;
  [[nodiscard]] bool is_local(int rank) const { return members_[static_cast<std::size_t>(rank)].is_local; }
  [[nodiscard]] bool in_device_memory(int rank, MemoryKind kind) const;
  [[nodiscard]] ChunkTable plan(const DistributedRequest& request, const std::vector<Proposal>& all) const;
  [[nodiscard]] std::vector<Chunk> chunks_of(const ChunkTable& table, MemoryKind kind) const;
  void share(const std::vector<Chunk>& chunks);
  void share_host(const std::vector<Chunk>& chunks, int descriptor);
  void share_device(const std::vector<Chunk>& chunks, const std::vector<FileDescriptor>& mine);
  void remove(const std::vector<Chunk>& chunks);
  [[nodiscard]] Places used() const;

  Bootstrap& bootstrap_;
  AddressRange& range_;
  MemoryAliases& aliases_;
  const std::vector<MemoryMember> members_;
  const std::int64_t deadline_ns_;
  std::map<std::uint32_t, ChunkTable> arrays_;
  std::map<std::uint32_t, MemoryKind> kinds_;
};

}  // namespace beeline
