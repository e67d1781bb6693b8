// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds the owner of any address: in slots by a shift, in distributed arrays by their chunk tables, in registered
/// memory by intervals.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"
#include "beeline/core/macros.hpp"
#include "beeline/memory/chunk_table.hpp"

namespace beeline {

/// Number of slots for distributed arrays, after the slots of the ranks.
inline constexpr std::uint32_t array_slots = 8;
/// Number of equal places into which these slots are divided; an array takes one or several.
inline constexpr std::uint32_t array_places = 256;
/// Largest number of registered parts that have an address.
inline constexpr std::uint32_t max_intervals = 256;

/// Memory outside the address range that a rank has registered.
struct AddressInterval {
  std::uintptr_t begin;  ///< address in this process
  std::uint64_t bytes;
  std::uint32_t owner;  ///< world rank
  std::uint32_t unused;
};

/// The owners that cannot be computed from an address alone. Each rank has a table in memory that its kernels read.
struct AddressTable {
  std::uint16_t array_at[array_places];  ///< for each place: 1 + the first place of the array that contains it; 0: no
                                         ///< array
  ChunkTable arrays[array_places];       ///< indexed by an array's first place
  std::uint32_t interval_count;
  AddressInterval intervals[max_intervals];  ///< [interval_count] ascending, without overlaps
};
static_assert(std::is_trivially_copyable_v<AddressTable>);

/// The map for kernels, made by `World::address_map`; pass it by value. Its table changes when arrays or registrations
/// are made or destroyed; kernels that use the map must not run meanwhile.
struct AddressMap {
  std::byte* range;  ///< start of the address range in this process
  std::uint32_t slot_shift, slots;
  const AddressTable* table;

  /// World rank that owns the memory at `address`, or `no_peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t owner_of(const void* address) const {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(range);
    const std::uintptr_t slot = offset >> slot_shift;
    if (slot < slots) return static_cast<std::uint32_t>(slot);
    if (const ChunkTable* array = array_of(address)) return array->owner_of(address);
    const AddressInterval* interval = interval_of(address);
    return interval == nullptr ? no_peer : interval->owner;
  }

  /// The distributed array whose places contain `address`, or nullptr.
  [[nodiscard]] BEELINE_HOST_DEVICE const ChunkTable* array_of(const void* address) const {
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(range) + (std::uintptr_t{slots} << slot_shift);
    const std::uintptr_t place = (reinterpret_cast<std::uintptr_t>(address) - first) >> place_shift();
    if (place >= array_places || table->array_at[place] == 0) return nullptr;
    return &table->arrays[table->array_at[place] - 1];
  }

  /// The registered memory that contains `address`, or nullptr.
  [[nodiscard]] BEELINE_HOST_DEVICE const AddressInterval* interval_of(const void* address) const {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    std::uint32_t first = 0, last = table->interval_count;
    while (first < last) {
      const std::uint32_t middle = (first + last) / 2;
      const AddressInterval& interval = table->intervals[middle];
      if (wanted - interval.begin < interval.bytes) return &interval;
      if (wanted < interval.begin)
        last = middle;
      else
        first = middle + 1;
    }
    return nullptr;
  }

  /// log2 of the bytes of one place for arrays.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t place_shift() const {
    static_assert(array_places == array_slots * 32);
    return slot_shift - 5;
  }
};
static_assert(std::is_trivially_copyable_v<AddressMap>);

}  // namespace beeline
