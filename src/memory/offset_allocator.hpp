// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// First-fit allocation of offsets, the same on every rank that makes the same calls.

#include <cstddef>
#include <map>

namespace beeline {

/// Allocates offsets in [0, bytes). Has no memory itself. Not thread-safe.
class OffsetAllocator {
 public:
  OffsetAllocator(std::size_t bytes, std::size_t alignment);

  /// Offset of `bytes` (rounded up to the alignment; 0 counts as 1). Throws no_resource, with the number of free bytes.
  [[nodiscard]] std::size_t allocate(std::size_t bytes);
  /// Allocates `bytes` at the highest possible offset that is at most `most`. Throws as `allocate`.
  [[nodiscard]] std::size_t allocate_high(std::size_t bytes, std::size_t most);
  /// Throws invalid_argument if `offset` is not allocated.
  void free(std::size_t offset);
  [[nodiscard]] bool holds(std::size_t offset) const { return used_.contains(offset); }
  [[nodiscard]] std::size_t free_bytes() const;
  /// All allocations: offset to bytes.
  [[nodiscard]] const std::map<std::size_t, std::size_t>& used() const { return used_; }
  /// Replaces all allocations by `used`: offset to bytes, multiples of the alignment, without overlap.
  void assign(std::map<std::size_t, std::size_t> used);

 private:
  [[nodiscard]] std::size_t rounded(std::size_t bytes) const;
  [[noreturn]] void refuse(std::size_t bytes) const;
  std::size_t bytes_, alignment_;
  std::map<std::size_t, std::size_t> free_, used_;  ///< offset to bytes
};

}  // namespace beeline
