// SPDX-License-Identifier: Apache-2.0
#include "host/world/heaps.hpp"

#include "memory/allocator_union.hpp"

namespace beeline {

Heaps::Heaps(const Areas& areas, std::size_t heap_bytes, std::size_t pinned_bytes, detail::AllocationMap& allocations,
             bool is_heap_on_host)
    : areas_(areas), heap_start_(areas.heap_start()), pinned_start_(areas.pinned_start()), heap_bytes_(heap_bytes),
      pinned_bytes_(pinned_bytes), allocations_(allocations), heap_(heap_bytes, allocation_alignment),
      pinned_(pinned_bytes, allocation_alignment) {
  if (is_heap_on_host) allocations_.add_heap(areas.offset_in_slot(heap_start_), heap_bytes);
  allocations_.add_heap(areas.offset_in_slot(pinned_start_), pinned_bytes);
}

std::size_t Heaps::take(Heap heap, std::size_t bytes, std::optional<std::uint64_t> most) {
  const std::lock_guard lock(mutex_);
  return most ? allocator_of(heap).allocate_high(bytes, *most) : allocator_of(heap).allocate(bytes);
}

void Heaps::give_back(Place place) {
  const std::lock_guard lock(mutex_);
  allocator_of(place.heap).free(place.offset);
}

void Heaps::open(Place place) {
  const std::lock_guard lock(mutex_);
  allocations_.allocate(areas_.offset_in_slot(address_of(place)), allocator_of(place.heap).used().at(place.offset));
}

std::optional<std::size_t> Heaps::bytes_at(Place place) const {
  const std::lock_guard lock(mutex_);
  const auto& used = (place.heap == Heap::pinned ? pinned_ : heap_).used();
  const auto found = used.find(place.offset);
  return found == used.end() ? std::nullopt : std::optional(found->second);
}

void Heaps::free(Place place) {
  const std::lock_guard lock(mutex_);
  allocations_.free(areas_.offset_in_slot(address_of(place)), allocator_of(place.heap).used().at(place.offset));
  allocator_of(place.heap).free(place.offset);
}

void Heaps::unite(Bootstrap& bootstrap, std::int64_t deadline_ns) {
  const std::lock_guard lock(mutex_);
  unite_allocators(bootstrap, {&heap_, &pinned_}, deadline_ns);
  for (const Heap heap : {Heap::symmetric, Heap::pinned}) {
    const std::uint64_t first = areas_.offset_in_slot(start_of(heap));
    if (const std::size_t bytes = heap == Heap::pinned ? pinned_bytes_ : heap_bytes_; bytes > 0)
      allocations_.free(first, bytes);
    for (const auto& [offset, used] : allocator_of(heap).used()) allocations_.allocate(first + offset, used);
  }
}

}  // namespace beeline
