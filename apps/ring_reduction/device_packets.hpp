// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the packet rings of scheme device_packets take.

#include <cstddef>
#include <cstdint>

namespace ring_reduction {

/// Most lanes, each with a channel of its own: a block of a rank sends to a peer by a channel.
inline constexpr unsigned most_packet_lanes = 16;
inline constexpr std::uint32_t packet_depth = 16;
inline constexpr std::size_t packet_slot_bytes = std::size_t{8} << 10;

/// Symmetric memory of a rank of `ranks` for so many lanes: a packet pair of 16 bytes carries 8.
[[nodiscard]] constexpr std::size_t packet_ring_bytes(int ranks, unsigned lanes) {
  return lanes * packet_depth * 2 * packet_slot_bytes * static_cast<std::size_t>(ranks);
}

}  // namespace ring_reduction
