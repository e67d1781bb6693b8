// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory of channels of packets (methods device/peer/ll and device/peer/ll128).

#include <cstddef>
#include <cstdint>
#include <string>

#include "beeline/device/packets.hpp"
#include "beeline/host/team.hpp"

namespace beeline {

/// Collective. Why the members cannot use ll128, the same on each; empty if they can. Worlds with host ranks
/// cannot. Among GPUs a team's first call tests every pair of members for some milliseconds, unless all ranks of the
/// world have passed: while lines of changing data are stored, does the receiver ever see one whose data is not its
/// flag's?
[[nodiscard]] std::string no_ll128_reason(Team& team);

/// Packet rings between all pairs of a team's members, in a protocol: LL, or LL128 in worlds that have it. They are
/// freed by the destructor, which is collective.
template <class Protocol>
class ProtocolRings {
 public:
  /// Collective. Messages of up to `slot_bytes` need one slot; `depth` is a power of two. In a team of both kinds of
  /// rank always pinned. Throws invalid_argument for other sizes, and for LL128 in another heap than the symmetric one;
  /// unavailable, with the reason, where there is no LL128, and LL serves instead; otherwise as `Team::allocate`.
  explicit ProtocolRings(Team& team, std::size_t slot_bytes, std::uint32_t depth = 16, Heap heap = Heap::symmetric,
                         std::uint32_t first_sequence = 0);

  /// For kernels, by value.
  [[nodiscard]] const ProtocolChannel<Protocol>& channel() const { return channel_; }

 private:
  ProtocolChannel<Protocol> channel_;
  SymmetricArray<std::byte> memory_;
};
using PacketRings = ProtocolRings<LL>;
using LL128Rings = ProtocolRings<LL128>;

}  // namespace beeline
