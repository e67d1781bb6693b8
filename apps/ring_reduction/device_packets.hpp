// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The sizes of the packet rings of scheme device_packets.

#include <cstddef>
#include <cstdint>

namespace ring_reduction {

/// Largest number of lanes. Each lane has its own channel, by which one block of a rank sends to a peer.
inline constexpr unsigned most_packet_lanes = 16;
inline constexpr std::uint32_t packet_depth = 16;
inline constexpr std::size_t packet_slot_bytes = std::size_t{8} << 10;

/// Symmetric memory of a rank for `lanes` lanes: a packet pair of 16 bytes carries 8 bytes.
[[nodiscard]] constexpr std::size_t packet_ring_bytes(int ranks, unsigned lanes) {
  return lanes * packet_depth * 2 * packet_slot_bytes * static_cast<std::size_t>(ranks);
}

}  // namespace ring_reduction
