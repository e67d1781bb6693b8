// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory of pair links (collectives/impl/pair_links.hpp).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "beeline/collectives/impl/pair_links.hpp"
#include "beeline/host/team.hpp"

namespace beeline::detail {

/// Sizes of a pair channel.
struct PairSizes {
  std::uint32_t depth;      ///< chunks in flight from one member to another, at least 2
  std::size_t chunk_bytes;  ///< data of a chunk, a multiple of 64
};

/// Whether kernels and calls of the host use the same links. On a GPU rank they post to different rings, so a chunk of
/// one could overtake a chunk of the other.
[[nodiscard]] bool kernels_share_links(const Team& team);

/// The memory of channels, and the addresses of its parts.
class PairMemory {
 public:
  /// Collective.
  ///   sizes  of each channel
  PairMemory(Team& team, std::span<const PairSizes> sizes);
  /// The first channel.
  [[nodiscard]] const PairChannel& channel() const { return channels_.front(); }
  [[nodiscard]] std::span<const PairChannel> channels() const { return channels_; }

 private:
  SymmetricArray<std::byte> memory_;
  std::vector<PairChannel> channels_;
};

}  // namespace beeline::detail
