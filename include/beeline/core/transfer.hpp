// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How vectors got from member to member.

#include <cstdint>

namespace beeline {

/// How the vectors of a collective call get from member to member.
enum class Transfer : std::uint32_t {
  none,       ///< nothing was moved yet, or there was nothing to move
  in_place,   ///< zero-copy: members load from and store to each other's vectors where they lie
  staged,     ///< in and out through the channel's memory
  packets,    ///< copied into packets, and out of them
  registered  ///< as in_place, of vectors in ordinary memory that the members have mapped
};
inline constexpr std::uint32_t transfers = 5;

/// The name as it appears in messages, in Python and in JSON.
[[nodiscard]] constexpr const char* name(Transfer transfer) {
  constexpr const char* names[] = {"none", "in_place", "staged", "packets", "registered"};
  return static_cast<std::uint32_t>(transfer) < transfers ? names[static_cast<std::uint32_t>(transfer)] : "unknown";
}

}  // namespace beeline
