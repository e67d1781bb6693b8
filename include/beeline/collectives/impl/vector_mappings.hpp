// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where the members of a team have mapped a member's vectors that lie outside the heaps (host/segment_mappings.hpp).

#include <cstdint>
#include <type_traits>

namespace beeline::detail {

inline constexpr std::uint32_t most_mapping_members = 8;  ///< GPUs of a node; a kernel's arguments are to be few

/// From this member's vectors to the addresses at which each member reaches them, in bytes.
struct VectorMappings {
  std::int64_t destination[most_mapping_members];
  std::int64_t source[most_mapping_members];
  bool complete;  ///< every member reaches both
};
static_assert(std::is_trivially_copyable_v<VectorMappings>);

/// What the threads of a group share of it.
struct MappingTable {
  VectorMappings mine;
  std::uintptr_t destinations[most_mapping_members];  ///< of each member, as this one reaches them
  std::uintptr_t sources[most_mapping_members];
};

}  // namespace beeline::detail
