// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The packet channel, LL or LL128, for the measurements of a message size.

#include <cstdint>

#include "beeline/host/packets.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// Payload of one pair of packets.
inline constexpr unsigned packet_payload_bytes = 8;
/// Threads of a block: with 1024 threads, packet kernels would need more registers than a block has.
inline constexpr unsigned packet_kernel_threads = 512;

/// A channel with one of two slot sizes, so that the result for a size does not depend on which other sizes are
/// measured: slots of 4 KB for messages that fit, of 64 KB otherwise. It is deep enough that returning credits, twice
/// per lap, costs little per message.
template <class Protocol>
class RingsOfTwoKinds {
 public:
  /// Collective.
  RingsOfTwoKinds(Team& team, std::uint64_t bytes) : rings_(team, bytes <= small ? small : large, depth) {}

  [[nodiscard]] const ProtocolChannel<Protocol>& channel() const { return rings_.channel(); }
  [[nodiscard]] Settings settings() const {
    return {{"slot_bytes", std::uint64_t{channel().slot_bytes()}}, {"depth", std::uint64_t{channel().depth}}};
  }

 private:
  static constexpr std::size_t small = 4 << 10, large = 64 << 10;
  static constexpr std::uint32_t depth = 64;
  ProtocolRings<Protocol> rings_;
};

}  // namespace beeline::bench
