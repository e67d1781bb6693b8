// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory that a graph and its searches need, known before anything is allocated.

#include <cstdint>

#include "beeline/core/config.hpp"
#include "common/memory_budget.hpp"

namespace breadth_first {

/// Edges that a rank works on, or reads from another one, between two barriers.
inline constexpr std::uint64_t piece_edges = std::uint64_t{1} << 20;

/// Edges of the input that a rank generates at most.
[[nodiscard]] constexpr std::uint64_t edges_of_rank(std::uint64_t edges, std::uint64_t ranks) {
  return (edges + ranks - 1) / ranks;
}

/// Throws no_resource if a rank's rows have more entries than `fit` expects.
void require_room(int scale, int ranks, std::uint64_t entries);

/// Sets the heap sizes of `config` for the graph, the methods and the checks of trees; throws as `apps::fit` does.
///   verify  rank 0 also holds the serial reference
void fit(beeline::Config& config, int scale, bool verify, const apps::Machine& machine);

}  // namespace breadth_first
