// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What is allocated in a rank's symmetric and pinned heap.

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
  /// An address behind a heap's header.
  struct Place {
    Heap heap;
    std::size_t offset;
  };
  ///   areas        whose heaps these are
  ///   allocations  gets what is allocated: of the symmetric heap only if CPU threads load and store there
  Heaps(const Areas& areas, std::size_t heap_bytes, std::size_t pinned_bytes, detail::AllocationMap& allocations,
        bool is_heap_on_host);

  /// The place of an address; none outside both heaps.
  [[nodiscard]] std::optional<Place> place_of(const void* address) const {
    if (const auto place = place_in(Heap::symmetric, address)) return place;
    return place_in(Heap::pinned, address);
  }
  [[nodiscard]] std::byte* address_of(Place place) const { return start_of(place.heap) + place.offset; }

  /// Takes the lowest place, or the highest one up to `most`. Throws no_resource.
  [[nodiscard]] std::size_t take(Heap heap, std::size_t bytes, std::optional<std::uint64_t> most);
  /// Undoes `take`.
  void give_back(Place place);
  /// Operations may use what was taken from now on.
  void open(Place place);
  /// Bytes of an allocation; none: there is no such one.
  [[nodiscard]] std::optional<std::size_t> bytes_at(Place place) const;
  void free(Place place);
  /// Collective. After a failure in a collective allocation: what is allocated on any rank is so on all.
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
