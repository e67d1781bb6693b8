// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory of packet channels (methods device/peer/ll and device/peer/ll128).

#include <cstddef>
#include <cstdint>
#include <string>

#include "beeline/device/packets.hpp"
#include "beeline/host/team.hpp"

namespace beeline {

/// Why the members cannot use LL128, the same on all of them; empty if they can. Collective. Worlds with host ranks
/// cannot use it. Among GPUs, a team's first call tests every pair of members for some milliseconds, unless all ranks
/// of the world have already passed the test. The test stores lines of changing data, and checks that the receiver
/// never sees a line whose data do not belong to its flag.
[[nodiscard]] std::string no_ll128_reason(Team& team);

/// Packet rings between all pairs of a team's members. The protocol is LL, or LL128 in worlds that support it. The
/// destructor frees them, and is collective.
template <class Protocol>
class ProtocolRings {
 public:
  /// Collective.
  ///   slot_bytes  length of the longest message that takes a single slot
  ///   depth       slots of a ring, a power of two
  ///   heap        ignored in a team with GPU ranks and host ranks, whose rings are always in the pinned heap
  /// Throws invalid_argument for other sizes, or for LL128 in another heap than the symmetric heap; unavailable, with
  /// the reason, if these ranks cannot use LL128 (use LL then); otherwise the same as `Team::allocate`.
  explicit ProtocolRings(Team& team, std::size_t slot_bytes, std::uint32_t depth = 16, Heap heap = Heap::symmetric,
                         std::uint32_t first_sequence = 0);

  /// The channel for kernels; pass it by value.
  [[nodiscard]] const ProtocolChannel<Protocol>& channel() const { return channel_; }

 private:
  ProtocolChannel<Protocol> channel_;
  SymmetricArray<std::byte> memory_;
};
using PacketRings = ProtocolRings<LL>;
using LL128Rings = ProtocolRings<LL128>;

}  // namespace beeline
