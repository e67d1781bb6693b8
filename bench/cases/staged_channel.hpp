// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The staged channel that a message size is measured with.

#include <cstddef>
#include <cstdint>

#include "beeline/host/staged_channel.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// Chunk and slots of host/staged/sequential and host/staged/pipelined.
struct StagedShape {
  std::size_t chunk_bytes;
  std::uint32_t slots;

  /// Sequential: one slot for the whole message. Pipelined: the configuration's chunks.
  StagedShape(const World& world, std::uint64_t bytes, bool pipelined)
      : chunk_bytes(pipelined ? world.config().chunk_bytes : bytes), slots(pipelined ? 4 : 1) {}

  [[nodiscard]] Settings settings() const {
    return {{"chunk_bytes", std::uint64_t{chunk_bytes}}, {"slots", std::uint64_t{slots}}};
  }
};

}  // namespace beeline::bench
