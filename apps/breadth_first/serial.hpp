// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The serial reference: the graph as lists of neighbours, and a search with one queue. Shares no code with the methods
/// but the generator of edges.

#include <cstdint>
#include <vector>

#include "kronecker.hpp"

namespace breadth_first {

class Serial {
 public:
  ///   threads  that generate the edges and make the lists, which are the same for any number
  explicit Serial(const Kronecker& graph, int threads = 1);

  /// Edges of a vertex to other vertices; edges that occur twice count twice.
  [[nodiscard]] std::size_t degree(std::uint32_t vertex) const { return begins_[vertex + 1] - begins_[vertex]; }
  /// The distance of each vertex from `root`; -1: not reached.
  [[nodiscard]] std::vector<std::int32_t> levels(std::uint32_t root) const;

  /// Bytes of host memory for a graph of this scale.
  [[nodiscard]] static std::size_t bytes(int scale) { return (edge_factor * 16 + 32) << scale; }

 private:
  std::vector<std::size_t> begins_;        ///< [vertices + 1]
  std::vector<std::uint32_t> neighbours_;  ///< of all vertices, one after the other
};

}  // namespace breadth_first
