// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory of a node's ranks as seen by one of them: heaps, host areas and segments in the address range.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "beeline/memory/segment.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "memory/address_range.hpp"
#include "memory/offset_allocator.hpp"

namespace beeline {

/// How one rank's device reaches another's memory.
enum class CopyPath : std::uint32_t {
  direct,  ///< by its own loads, stores and copies
  staged,  ///< by two copies through host memory; this process drives the owner's device for one of them
  none     ///< this process does not see the owner's device
};

/// The properties of each rank that the memory layer needs.
struct MemoryMember {
  std::uint64_t process = 0;  ///< equal for ranks that are threads of one process
  bool is_local = true;       ///< on this rank's node; memory of other nodes is not mapped
  int gpu = -1;               ///< CUDA index in the rank's process; -1 on a host rank
  int reaching_gpu = -1;      ///< on a host rank: the GPU by which its process reaches GPU memory; -1: none
  CopyPath copies = CopyPath::direct;
  int gpu_here = -1;  ///< CUDA index in this process; -1 on a host rank, or if this process does not see the GPU
  std::vector<int> seen_by{};  ///< GPUs of this process for which the rank's device memory is mapped
};

/// Sizes that are the same on every rank.
struct MemorySizes {
  std::uint32_t slot_shift;
  std::size_t heap_bytes, host_area_bytes;
};

/// The shift of a world's slots: `sizes.slot_shift`, or more if the heaps need larger slots, but at most what the
/// address space has for so many ranks. Pure.
[[nodiscard]] std::uint32_t fitted_slot_shift(const MemorySizes& sizes, int ranks);

/// Ranks of other nodes have slots, too, for addresses that engines use; nothing is mapped there. Owned by one rank's
/// world. The constructor and the functions marked so are collective.
class NodeMemory {
 public:
  NodeMemory(Bootstrap& bootstrap, std::uint64_t world_id, std::vector<MemoryMember> members, const MemorySizes& sizes,
             std::int64_t deadline_ns);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  [[nodiscard]] AddressRange& range() const { return *range_; }
  /// Whether every process has the range at the same address.
  [[nodiscard]] bool global_addresses() const { return global_addresses_; }
  [[nodiscard]] std::byte* heap(int rank) const;
  [[nodiscard]] std::byte* host_area(int rank) const;
  [[nodiscard]] const MemorySizes& sizes() const { return sizes_; }

  /// Collective. See World::create_segment.
  [[nodiscard]] const Segment& create_segment(MemoryKind kind, std::size_t bytes);
  /// Collective. Throws invalid_argument for an unknown id, and if ranks pass different ids.
  void destroy_segment(std::uint32_t id);
  /// Collective. After a failure, the remaining ranks agree on the offsets and ids of segments.
  void align_segments();
  /// Bytes from an address in the slot of any rank to the end of the segment's part that contains it; 0 if no segment
  /// has a part there. Any thread calls it.
  [[nodiscard]] std::size_t room_in_segment(const void* address) const;

 private:
  struct Part {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    bool device = false;
  };
  struct Placement {
    OffsetAllocator device, host;
  };

  void reserve(std::uint64_t seed, const std::vector<bool>& gpu_ranks);
  [[nodiscard]] bool everyone(bool mine);
  /// Collective. Makes this rank's part, exchanges descriptors with the other ranks, and maps their parts. If that
  /// fails on one rank, throws on all.
  void share(const std::vector<Part>& parts);
  /// The start of a rank's segments in GPU or host memory.
  [[nodiscard]] std::byte* segments_of(int rank, bool device) const;
  [[nodiscard]] Part place(int rank, MemoryKind kind, std::size_t bytes);
  /// Unmaps the part of `rank`, and frees its offsets.
  void remove(int rank, const Part& part);
  /// Adds the parts of a segment to those that `room_in_segment` finds, or removes them.
  void list(const Segment& segment, bool exists);

  Bootstrap& bootstrap_;
  const std::vector<MemoryMember> members_;
  const MemorySizes sizes_;
  const std::int64_t deadline_ns_;
  std::shared_ptr<AddressRange> range_;
  bool global_addresses_ = true;
  std::vector<Placement> placements_;  ///< [ranks]
  std::map<std::uint32_t, Segment> segments_;
  std::uint32_t next_segment_ = 0;
  mutable std::shared_mutex listing_;                   ///< for `part_bytes_`
  std::map<const std::byte*, std::size_t> part_bytes_;  ///< usable bytes of each rank's part of each segment
};

}  // namespace beeline
