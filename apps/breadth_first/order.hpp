// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The vertices in the order of their degrees, and their distribution among ranks. Vertices without edges have no
/// position.

#include <cstdint>
#include <vector>

namespace breadth_first {

inline constexpr std::uint32_t no_vertex = 0xffffffff;

/// Vertex i of the order belongs to rank i % ranks, whose vertex i / ranks it is, so all ranks have about as many
/// edges. Its *position* is rank * per_rank + i / ranks: a rank's positions are contiguous, and so are its bits in a
/// bitmap.
struct Order {
  std::uint32_t ranks = 1, per_rank = 0;  ///< per_rank: a multiple of 128, so that bitmaps of ranks begin at 16 bytes
  std::uint64_t vertices = 0;             ///< with edges
  std::uint64_t entries = 0;              ///< sum of all degrees
  std::uint32_t largest_degree = 0;
  std::vector<std::uint32_t> positions;  ///< [all vertices] of the graph; no_vertex without edges
  std::vector<std::uint32_t> labels;     ///< [ranks * per_rank] the vertex at a position; no_vertex for padding
};

/// Sorts vertices by falling degree, those of the same degree by their number.
[[nodiscard]] Order order_of(const std::vector<std::uint32_t>& degrees, std::uint32_t ranks);

/// Positions of a rank in a graph of `vertices`, all of which may have edges.
[[nodiscard]] constexpr std::uint64_t positions_of_rank(std::uint64_t vertices, std::uint64_t ranks) {
  return ((vertices + ranks - 1) / ranks + 127) / 128 * 128;
}

}  // namespace breadth_first
