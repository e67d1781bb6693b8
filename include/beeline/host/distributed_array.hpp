// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One array over the memory of several ranks, behind one pointer.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "beeline/host/world.hpp"
#include "beeline/memory/chunk_table.hpp"

namespace beeline {

/// How an array is distributed: its chunks go to ranks 0, 1, ... in turn.
struct Distribution {
  std::size_t chunk_elements = 0;  ///< 0: one equal chunk for each rank; otherwise block-cyclic
  /// `device`: each rank's own kind of memory; `pinned` or `host`: host memory on all.
  MemoryKind kind = MemoryKind::device;
};

/// The view of a distributed array in kernels; pass it by value. Kernels load and store the elements of all ranks
/// directly, if the access matrix permits it (docs/design.md, One address range). Arrays over several nodes have none.
template <class T>
struct DistributedView {
  T* data;
  std::size_t count;
  ChunkTable chunks;

  [[nodiscard]] BEELINE_HOST_DEVICE T& operator[](std::size_t index) const { return data[index]; }
  /// World rank whose memory has the element's first byte; `index` is less than `count`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t owner_of(std::size_t index) const {
    return chunks.owner_at(index * sizeof(T));
  }
};

/// Elements [first, last) of an array.
struct ElementRange {
  std::size_t first, last;
};

namespace detail {
[[nodiscard]] ChunkTable make_distributed(World& world, std::size_t bytes, std::size_t chunk_bytes, MemoryKind kind);
void free_distributed(World& world, std::uintptr_t base);
/// Whether some ranks of an array are on other nodes than this rank.
[[nodiscard]] bool spans_nodes(const World& world);
/// Throws unreachable, with the reason, if bytes of an array belong to a rank on another node.
void require_on_node(const World& world, const ChunkTable& chunks, std::size_t first, std::size_t bytes);
}  // namespace detail

/// `count` zeroed elements of T, distributed over the ranks of the world. The destructor frees them; like `Team::free`,
/// it is collective and waits for the default stream. An exception that leaves the array's scope on one rank only must
/// end that rank's world.
///
/// Chunks are rounded up to whole pages: 4 KiB, or 2 MiB if GPU memory takes part. If sizeof(T) does not divide this
/// size, an element may extend over two chunks; the owner of its first byte owns it. The pointer is the same on every
/// rank if `World::global_addresses()` is true. After a failure, free an array that has chunks of a dead rank.
///
/// Ranks may be on several nodes. `World::copy` then reaches all elements, in ranges of any length, by the network;
/// plain loads and stores reach those of ranks on the own node, of which `elements_of` and `data` give the addresses.
/// Source: seed 001 (unified address space; one object over several devices); seed 000 section 6.3.
template <class T>
class DistributedArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>, "elements are zeroed, and travel as bytes");

  /// Collective. Throws invalid_argument if ranks pass different arguments, for 0 elements, or for too many chunks
  /// (more than 16384, or 512 if GPU memory takes part); no_resource if memory or address space is full; unavailable
  /// for more than 64 ranks.
  DistributedArray(World& world, std::size_t count, const Distribution& distribution = {})
      : world_(&world), life_(world.life()), count_(count), spans_nodes_(detail::spans_nodes(world)),
        chunks_(detail::make_distributed(world, detail::array_bytes(count, sizeof(T)),
                                         detail::array_bytes(distribution.chunk_elements, sizeof(T)),
                                         distribution.kind)) {}
  DistributedArray(DistributedArray&& other) noexcept
      : world_(other.world_), life_(other.life_), count_(std::exchange(other.count_, 0)),
        spans_nodes_(other.spans_nodes_), chunks_(std::exchange(other.chunks_, {})) {}
  DistributedArray(const DistributedArray&) = delete;
  DistributedArray& operator=(const DistributedArray&) = delete;
  DistributedArray& operator=(DistributedArray&&) = delete;
  ~DistributedArray() {
    if (chunks_.base == 0 || !life_->is_usable() || world_->failed() || std::uncaught_exceptions() > 0) return;
    try {
      detail::free_distributed(*world_, chunks_.base);
    } catch (const std::exception& error) {
      log(LogLevel::warning, error.what(), world_->rank());
    }
  }

  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(chunks_.base); }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
  /// Direct access by a CPU thread, for elements in host memory only; copy other elements with `World::copy`. Throws
  /// unreachable for an element on another node.
  [[nodiscard]] T& operator[](std::size_t index) const {
    if (spans_nodes_) [[unlikely]]
      detail::require_on_node(*world_, chunks_, index * sizeof(T), sizeof(T));
    return data()[index];
  }
  [[nodiscard]] int owner_of(std::size_t index) const { return static_cast<int>(chunks_.owner_at(index * sizeof(T))); }
  [[nodiscard]] const ChunkTable& chunks() const { return chunks_; }
  /// The view for kernels. Throws unreachable if elements are on other nodes.
  [[nodiscard]] DistributedView<T> view() const {
    if (spans_nodes_) detail::require_on_node(*world_, chunks_, 0, chunks_.bytes);
    return {data(), count_, chunks_};
  }

  /// The elements that `rank` owns, as ranges in ascending order.
  [[nodiscard]] std::vector<ElementRange> elements_of(int rank) const {
    std::vector<ElementRange> ranges;
    for (std::size_t start = 0; start < chunks_.bytes; start += chunks_.chunk_bytes()) {
      if (static_cast<int>(chunks_.owner_at(start)) != rank) continue;
      const auto first_behind = [this](std::size_t offset) {
        const std::size_t index = (offset + sizeof(T) - 1) / sizeof(T);
        return index < count_ ? index : count_;
      };
      const ElementRange range{first_behind(start), first_behind(start + chunks_.chunk_bytes())};
      if (range.first < range.last) ranges.push_back(range);
    }
    return ranges;
  }

 private:
  World* world_;
  std::shared_ptr<const detail::TeamLife> life_;
  std::size_t count_;
  bool spans_nodes_;
  ChunkTable chunks_;
};

}  // namespace beeline
