// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory of a node's ranks as one of them sees it: heaps, host areas and segments in the address range.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "beeline/memory/segment.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "memory/address_range.hpp"
#include "memory/offset_allocator.hpp"

namespace beeline {

/// How one rank's device reaches another's memory.
enum class CopyPath : std::uint32_t {
  direct,  ///< by its own loads, stores and copies
  staged,  ///< by copies in two steps: the owner's device, driven from here, moves the data between it and host memory
  none     ///< the owner's device is not seen by this process
};

/// The properties of each rank that the memory layer needs.
struct MemoryMember {
  std::uint64_t process = 0;  ///< equal for ranks that are threads of one process
  bool is_local = true;       ///< on this rank's node; memory of others is not mapped
  int gpu = -1;               ///< CUDA index in its own process, -1 on a host rank
  int reaching_gpu = -1;      ///< host rank: the GPU with which its process reaches GPU memory; -1: it does not
  CopyPath copies = CopyPath::direct;
  int gpu_here = -1;  ///< CUDA index in this process; -1 on a host rank, and where this process does not see it
  std::vector<int> seen_by{};  ///< GPUs of this process that its device memory is mapped for
};

/// Sizes that every rank agrees on.
struct MemorySizes {
  std::uint32_t slot_shift;
  std::size_t heap_bytes, host_area_bytes;
};

/// Ranks of other nodes have slots too, for addresses that engines know; nothing is mapped there.
/// Owned by one rank's world. Constructor and the functions marked so are collective.
class NodeMemory {
 public:
  NodeMemory(Bootstrap& bootstrap, std::uint64_t world_id, std::vector<MemoryMember> members, const MemorySizes& sizes,
             std::int64_t deadline_ns);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  [[nodiscard]] AddressRange& range() const { return *range_; }
  /// Whether every process sees the range at the same address.
  [[nodiscard]] bool global_addresses() const { return global_addresses_; }
  [[nodiscard]] std::byte* heap(int rank) const;
  [[nodiscard]] std::byte* host_area(int rank) const;
  [[nodiscard]] const MemorySizes& sizes() const { return sizes_; }

  /// Collective. See World::create_segment.
  [[nodiscard]] const Segment& create_segment(MemoryKind kind, std::size_t bytes);
  /// Collective. Throws invalid_argument for an unknown id, and when ranks give different ones.
  void destroy_segment(std::uint32_t id);
  /// Collective: after a failure, the ranks that are left agree on the places and numbers that segments have.
  void align_segments();

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
  /// Collective: makes this rank's part, passes it to the others, and maps theirs. If it fails on one rank, it throws
  /// on all.
  void share(const std::vector<Part>& parts);
  /// Where a rank's segments of GPU or host memory begin.
  [[nodiscard]] std::byte* segments_of(int rank, bool device) const;
  [[nodiscard]] Part place(int rank, MemoryKind kind, std::size_t bytes);
  /// Unmaps the part of `rank`, and frees its offsets.
  void remove(int rank, const Part& part);

  Bootstrap& bootstrap_;
  const std::vector<MemoryMember> members_;
  const MemorySizes sizes_;
  const std::int64_t deadline_ns_;
  std::shared_ptr<AddressRange> range_;
  bool global_addresses_ = true;
  std::vector<Placement> placements_;  ///< [ranks]
  std::map<std::uint32_t, Segment> segments_;
  std::uint32_t next_segment_ = 0;
};

}  // namespace beeline
