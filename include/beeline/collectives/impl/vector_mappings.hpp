// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The team members' mappings of a member's vectors outside the heaps (host/segment_mappings.hpp).

#include <cstdint>
#include <type_traits>

namespace beeline::detail {

inline constexpr std::uint32_t most_mapping_members = 8;  ///< GPUs of a node; kept small for kernel arguments

/// Distances in bytes from this member's vectors to the addresses at which each member reaches them.
struct VectorMappings {
  std::int64_t destination[most_mapping_members];
  std::int64_t source[most_mapping_members];
  bool complete;  ///< whether every member reaches both vectors
};
static_assert(std::is_trivially_copyable_v<VectorMappings>);

/// The mappings that the threads of a group share.
struct MappingTable {
  VectorMappings mine;
  std::uintptr_t destinations[most_mapping_members];  ///< destination of each member, as an address of this member
  std::uintptr_t sources[most_mapping_members];
};

}  // namespace beeline::detail
