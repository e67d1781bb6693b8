// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The size of objects' blocks, and the mappings that blocks may need.

#include <cstddef>

namespace beeline::hpe::detail {

/// The bytes of a block of an object of `bytes` bytes.
///   asked               0: a default, which permits several objects of any length
///   may_need_mappings   whether each block may need a mapping of its own
/// Throws invalid_argument for 0 bytes, and unless `asked` is a power of two and at least a page.
[[nodiscard]] std::size_t block_bytes_for(std::size_t bytes, std::size_t asked, bool may_need_mappings);

/// Mappings for `blocks` blocks of an object, which may all differ in their protection.
class ReservedMappings {
 public:
  /// Throws no_resource if all objects of the process could need more than vm.max_map_count.
  explicit ReservedMappings(std::size_t blocks);
  ~ReservedMappings();
  ReservedMappings(const ReservedMappings&) = delete;
  ReservedMappings& operator=(const ReservedMappings&) = delete;

 private:
  const std::size_t blocks_;
};

}  // namespace beeline::hpe::detail
