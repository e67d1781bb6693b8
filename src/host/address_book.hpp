// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The copy of a rank's address table that its CPU threads read while arrays and registrations come and go.

#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "beeline/memory/address_map.hpp"

namespace beeline {

/// Thread-safe.
class AddressBook {
 public:
  /// Sets the address range of the ranks' slots, once that is known.
  void open(std::byte* range, std::uint32_t slot_shift, std::uint32_t slots);

  [[nodiscard]] std::uint32_t owner_of(const void* address) const;
  /// Whether `address` is in a rank's slot, which holds its heaps and segments: engines know no other memory.
  [[nodiscard]] bool is_in_slot(const void* address) const;
  /// Bytes from `address` on that certainly have the same owner; SIZE_MAX if all memory has one owner.
  [[nodiscard]] std::size_t bytes_of_one_owner(const void* address) const;

  /// Replaces the tables of distributed arrays.
  void set_arrays(const std::map<std::uint32_t, ChunkTable>& arrays, std::size_t place_bytes);
  /// Replaces the intervals. `intervals`: ascending, at most max_intervals.
  void set_intervals(const std::vector<AddressInterval>& intervals);
  /// The table, for kernels.
  [[nodiscard]] std::unique_ptr<AddressTable> snapshot() const;

 private:
  mutable std::shared_mutex mutex_;
  std::unique_ptr<AddressTable> table_ = std::make_unique<AddressTable>();
  AddressMap map_{};
};

}  // namespace beeline
