// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The packet channel, of LL or LL128, that a message size is measured with.

#include <cstdint>

#include "beeline/host/packets.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// What one pair of packets carries.
inline constexpr unsigned packet_payload_bytes = 8;
/// A block's threads: packet kernels take more registers than a block of 1024 threads has.
inline constexpr unsigned packet_kernel_threads = 512;

/// A channel of two kinds only, so that a size is measured alike whatever other sizes are: slots of 4 KB for what fits,
/// of 64 KB otherwise. Deep enough that the cost of returning credits, paid twice a lap, is small on each message.
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
