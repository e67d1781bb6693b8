// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A rank's address table: the copy that its CPU threads read, while arrays and registrations come and go.

#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "beeline/memory/address_map.hpp"

namespace beeline {

/// Thread-safe.
class AddressBook {
 public:
  /// Says where the range is, once it is known.
  void open(std::byte* range, std::uint32_t slot_shift, std::uint32_t slots);

  [[nodiscard]] std::uint32_t owner_of(const void* address) const;
  /// Whether it is in the slot of a rank, as heaps and segments are: engines know only these.
  [[nodiscard]] bool is_in_slot(const void* address) const;
  /// Bytes from `address` to the end of what surely has the same owner; SIZE_MAX in memory of one owner throughout.
  [[nodiscard]] std::size_t bytes_of_one_owner(const void* address) const;

  /// Replaces the arrays, by place.
  void set_arrays(const std::map<std::uint32_t, ChunkTable>& arrays, std::size_t place_bytes);
  /// Replaces the intervals: ascending, at most max_intervals.
  void set_intervals(const std::vector<AddressInterval>& intervals);
  /// The table, for kernels.
  [[nodiscard]] std::unique_ptr<AddressTable> snapshot() const;

 private:
  mutable std::shared_mutex mutex_;
  std::unique_ptr<AddressTable> table_ = std::make_unique<AddressTable>();
  AddressMap map_{};
};

}  // namespace beeline
