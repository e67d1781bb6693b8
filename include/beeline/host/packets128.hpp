// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Channels of packets of 128 bytes (method device/peer/packets128), where a world may use them.

#include <cstddef>
#include <cstdint>
#include <string>

#include "beeline/device/packets128.hpp"
#include "beeline/host/world.hpp"

namespace beeline {

/// Collective. Why this world cannot use packets128, the same on every rank; empty if it can. Host ranks cannot. Among
/// GPUs the first call tests every pair of ranks for some milliseconds: while lines of changing data are stored, does
/// the receiver ever see one whose data is not its flag's?
[[nodiscard]] std::string packets128_obstacle(World& world);

/// Collective. Rings of lines between all pairs, in device memory; messages of up to `slot_bytes` need one slot.
/// `depth` is a power of two. Free `slots.rings` and `slots.states`.
/// Throws unavailable, with the obstacle, where `World::packet_channel` serves instead; otherwise as that.
[[nodiscard]] Packets128Channel packets128_channel(World& world, std::size_t slot_bytes, std::uint32_t depth = 16,
                                                   std::uint32_t first_sequence = 0);

}  // namespace beeline
