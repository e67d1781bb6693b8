// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// First-fit allocation of offsets, the same on every rank that makes the same calls.

#include <cstddef>
#include <map>

namespace beeline {

/// Hands out offsets of [0, bytes). Holds no memory itself. Not thread-safe.
class OffsetAllocator {
 public:
  OffsetAllocator(std::size_t bytes, std::size_t alignment);

  /// Offset of `bytes` (rounded up to the alignment; 0 counts as 1). Throws no_resource, naming what is free.
  [[nodiscard]] std::size_t allocate(std::size_t bytes);
  /// The highest offset, of `most` at most, for as many bytes; allocates them there. Same errors.
  [[nodiscard]] std::size_t allocate_high(std::size_t bytes, std::size_t most);
  /// Throws invalid_argument when `offset` is not allocated.
  void free(std::size_t offset);
  [[nodiscard]] bool holds(std::size_t offset) const { return used_.contains(offset); }
  [[nodiscard]] std::size_t free_bytes() const;
  /// What is allocated: offset to bytes.
  [[nodiscard]] const std::map<std::size_t, std::size_t>& used() const { return used_; }
  /// Makes exactly `used` allocated: offset to bytes, multiples of the alignment that do not overlap.
  void assign(std::map<std::size_t, std::size_t> used);

 private:
  [[nodiscard]] std::size_t rounded(std::size_t bytes) const;
  [[noreturn]] void refuse(std::size_t bytes) const;
  std::size_t bytes_, alignment_;
  std::map<std::size_t, std::size_t> free_, used_;  ///< offset to bytes
};

}  // namespace beeline
