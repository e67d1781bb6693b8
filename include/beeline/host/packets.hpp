// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory of channels of packets (methods device/peer/packets and device/peer/packets128).

#include <cstddef>
#include <cstdint>
#include <string>

#include "beeline/device/packets.hpp"
#include "beeline/device/packets128.hpp"
#include "beeline/host/team.hpp"

namespace beeline {

/// Packet rings between all pairs of a team's members. They are freed by the destructor, which is collective.
class PacketRings {
 public:
  /// Collective. Messages of up to `slot_bytes` need one slot; `depth` is a power of two. In a team of both kinds of
  /// rank always pinned. Throws invalid_argument for other sizes; otherwise as `Team::allocate`.
  explicit PacketRings(Team& team, std::size_t slot_bytes, std::uint32_t depth = 16, Heap heap = Heap::symmetric,
                       std::uint32_t first_sequence = 0);

  /// For kernels, by value.
  [[nodiscard]] const PacketChannel& channel() const { return channel_; }

 private:
  PacketChannel channel_;
  SymmetricArray<std::byte> memory_;
};

/// Collective. Why the members cannot use packets128, the same on each; empty if they can. Worlds with host ranks
/// cannot. Among GPUs a team's first call tests every pair of members for some milliseconds, unless all ranks of the
/// world have passed: while lines of changing data are stored, does the receiver ever see one whose data is not its
/// flag's?
[[nodiscard]] std::string no_packets128_reason(Team& team);

/// Rings of lines of 128 bytes between all pairs of a team's members, in device memory; freed as `PacketRings`.
class Packets128Rings {
 public:
  /// Collective. Throws unavailable, with the reason, where `PacketRings` serve instead; otherwise as those.
  explicit Packets128Rings(Team& team, std::size_t slot_bytes, std::uint32_t depth = 16,
                           std::uint32_t first_sequence = 0);

  /// For kernels, by value.
  [[nodiscard]] Packets128Channel channel() const { return {slots_.channel()}; }

 private:
  PacketRings slots_;  ///< the same memory, as slots of packets
};

}  // namespace beeline
