// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The check of a search's result by the five rules of Graph500, from the tree and the list of edges alone. Source:
/// Graph500 specification, section "Validation".

#include <cstdint>
#include <vector>

#include "faults.hpp"
#include "graph.hpp"

namespace breadth_first {

/// Checks trees of a graph. Constructor and destructor are collective.
class TreeCheck {
 public:
  explicit TreeCheck(Graph& graph);

  /// Collective. Checks the tree that the graph has, with labels as parents.
  [[nodiscard]] Faults check(std::uint32_t root);
  /// The level of each vertex in the tree that was checked last; -1: not in the tree.
  [[nodiscard]] std::vector<std::int32_t> levels() const;
  /// Edges of the input with both ends in that tree, without those from a vertex to itself. Collective in `check`.
  [[nodiscard]] std::uint64_t edges() const { return edges_; }

  /// Bytes of symmetric memory on a rank.
  [[nodiscard]] static std::uint64_t bytes(std::uint64_t vertices, std::uint64_t positions) {
    return 4 * (3 * vertices + positions) + 1024;
  }

 private:
  Graph& graph_;
  beeline::SymmetricArray<std::uint32_t> gathered_;               ///< [ranks, per_rank] parents
  beeline::SymmetricArray<std::uint32_t> tree_, level_, joined_;  ///< [vertices] joined: an edge leads to the parent
  beeline::SymmetricArray<std::uint64_t> counts_;                 ///< [7] five rules, edges, changes of a pass
  std::uint64_t edges_ = 0;
};

}  // namespace breadth_first
