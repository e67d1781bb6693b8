// SPDX-License-Identifier: Apache-2.0
#include "host/address_book.hpp"

#include <algorithm>
#include <mutex>

namespace beeline {

void AddressBook::open(std::byte* range, std::uint32_t slot_shift, std::uint32_t slots) {
  const std::lock_guard lock(mutex_);
  map_ = {range, slot_shift, slots, table_.get()};
}

std::uint32_t AddressBook::owner_of(const void* address) const {
  const std::shared_lock lock(mutex_);
  return map_.owner_of(address);
}

bool AddressBook::is_in_slot(const void* address) const {
  const std::shared_lock lock(mutex_);
  const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(map_.range);
  return offset >> map_.slot_shift < map_.slots;
}

std::size_t AddressBook::bytes_of_one_owner(const void* address) const {
  const std::shared_lock lock(mutex_);
  const ChunkTable* array = map_.array_of(address);
  if (array == nullptr) return SIZE_MAX;
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(address) - array->base;
  return array->chunk_bytes() - offset % array->chunk_bytes();
}

void AddressBook::set_arrays(const std::map<std::uint32_t, ChunkTable>& arrays, std::size_t place_bytes) {
  const std::lock_guard lock(mutex_);
  std::fill_n(table_->array_at, array_places, std::uint16_t{0});
  for (const auto& [first, chunks] : arrays) {
    table_->arrays[first] = chunks;
    const std::size_t places = (chunks.bytes + place_bytes - 1) / place_bytes;
    std::fill_n(table_->array_at + first, places, static_cast<std::uint16_t>(first + 1));
  }
}

void AddressBook::set_intervals(const std::vector<AddressInterval>& intervals) {
  const std::lock_guard lock(mutex_);
  std::copy(intervals.begin(), intervals.end(), table_->intervals);
  table_->interval_count = static_cast<std::uint32_t>(intervals.size());
}

std::unique_ptr<AddressTable> AddressBook::snapshot() const {
  const std::shared_lock lock(mutex_);
  return std::make_unique<AddressTable>(*table_);
}

}  // namespace beeline
