// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Allocations in a rank's symmetric and pinned heaps.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "beeline/device/impl/allocation_map.hpp"
#include "beeline/host/team.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "host/world/areas.hpp"
#include "memory/offset_allocator.hpp"

namespace beeline {

/// Both heaps of one rank. Thread-safe.
class Heaps {
 public:
  /// An address in a heap, as an offset from the end of its header.
  struct Place {
    Heap heap;
    std::size_t offset;
  };
  ///   areas        addresses of the heaps
  ///   allocations  records allocations; those of the symmetric heap only if CPU threads load and store there
  Heaps(const Areas& areas, std::size_t heap_bytes, std::size_t pinned_bytes, detail::AllocationMap& allocations,
        bool is_heap_on_host);

  /// Heap and offset of an address; empty outside both heaps.
  [[nodiscard]] std::optional<Place> place_of(const void* address) const {
    if (const auto place = place_in(Heap::symmetric, address)) return place;
    return place_in(Heap::pinned, address);
  }
  [[nodiscard]] std::byte* address_of(Place place) const { return start_of(place.heap) + place.offset; }

  /// Allocates at the lowest free offset, or at the highest one up to `most`. Throws no_resource.
  [[nodiscard]] std::size_t take(Heap heap, std::size_t bytes, std::optional<std::uint64_t> most);
  /// Undoes `take`.
  void give_back(Place place);
  /// From now on operations may use the allocation.
  void open(Place place);
  /// Bytes of the allocation at `place`; empty if there is none.
  [[nodiscard]] std::optional<std::size_t> bytes_at(Place place) const;
  void free(Place place);
  /// Collective, after a failed collective allocation: marks each range that any rank has allocated as allocated on all
  /// ranks.
  void unite(Bootstrap& bootstrap, std::int64_t deadline_ns);

 private:
  [[nodiscard]] std::byte* start_of(Heap heap) const { return heap == Heap::pinned ? pinned_start_ : heap_start_; }
  [[nodiscard]] OffsetAllocator& allocator_of(Heap heap) { return heap == Heap::pinned ? pinned_ : heap_; }
  [[nodiscard]] std::optional<Place> place_in(Heap heap, const void* address) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(start_of(heap));
    if (offset >= (heap == Heap::pinned ? pinned_bytes_ : heap_bytes_)) return {};
    return Place{heap, offset};
  }

  const Areas& areas_;
  std::byte *const heap_start_, *const pinned_start_;
  const std::size_t heap_bytes_, pinned_bytes_;
  detail::AllocationMap& allocations_;
  mutable std::mutex mutex_;
  OffsetAllocator heap_, pinned_;  ///< guarded by mutex_
};

}  // namespace beeline
