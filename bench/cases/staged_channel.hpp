// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The staged channel that a message size is measured with.

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "beeline/control/staged.hpp"
#include "beeline/host/world.hpp"

namespace beeline::bench {

/// Chunk and slots of host/staged/sequential and host/staged/pipelined.
struct StagedShape {
  std::size_t chunk_bytes;
  std::uint32_t slots;

  /// Sequential: one slot for the whole message, as far as the pinned heap holds such slots towards every rank.
  /// Pipelined: the configuration's chunks.
  StagedShape(const World& world, std::uint64_t bytes, bool pipelined) : slots(pipelined ? 4 : 1) {
    const std::size_t room = world.config().pinned_heap_bytes / 2 / static_cast<std::size_t>(world.size()) / slots;
    const std::size_t page = 4096;
    const std::size_t wanted = pipelined ? world.config().chunk_bytes : (bytes + page - 1) / page * page;
    chunk_bytes = std::max(std::min(wanted, room / page * page), page);
  }

  [[nodiscard]] nlohmann::ordered_json settings() const { return {{"chunk_bytes", chunk_bytes}, {"slots", slots}}; }
};

}  // namespace beeline::bench
