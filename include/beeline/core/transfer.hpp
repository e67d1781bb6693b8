// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How the vectors of a collective call travelled.

#include <cstdint>

namespace beeline {

/// How the vectors of a collective call travel from member to member.
enum class Transfer : std::uint32_t {
  none,       ///< nothing was moved yet, or there was nothing to move
  in_place,   ///< zero-copy: members load from and store to each other's vectors
  staged,     ///< through bounce buffers in the channel's memory
  packets,    ///< copied into packets, and out of packets
  registered  ///< as in_place, with vectors in ordinary memory that the members have mapped
};
inline constexpr std::uint32_t transfers = 5;

/// The name as it appears in messages, in Python and in JSON.
[[nodiscard]] constexpr const char* name(Transfer transfer) {
  constexpr const char* names[] = {"none", "in_place", "staged", "packets", "registered"};
  return static_cast<std::uint32_t>(transfer) < transfers ? names[static_cast<std::uint32_t>(transfer)] : "unknown";
}

}  // namespace beeline
