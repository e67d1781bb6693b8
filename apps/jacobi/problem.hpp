// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: a grid of points, each of which becomes the mean of its four neighbours, and how ranks share its rows.

#include <cstddef>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "common/initial_value.hpp"
#include "common/memory_budget.hpp"

namespace jacobi {

/// Interior points of the whole grid. Around them lies a boundary, one point wide, that never changes.
struct Size {
  std::size_t columns, rows;
  /// Points that an iteration updates.
  [[nodiscard]] std::size_t points() const { return columns * rows; }
  /// Points with the boundary.
  [[nodiscard]] std::size_t stored() const { return (columns + 2) * (rows + 2); }
  friend bool operator==(const Size&, const Size&) = default;
};

/// Parses grids separated by commas: `N` gives each of `ranks` ranks N x N points, `COLUMNSxROWS` is the whole grid.
/// Numbers are 1 to 1M, with or without K, M (powers of 1024). Throws invalid_argument naming what is wrong.
[[nodiscard]] std::vector<Size> parse_sizes(const std::string& text, int ranks);

/// The interior rows of one rank.
struct Slab {
  std::size_t first;  ///< global number of its first row; row 0 is the boundary
  std::size_t rows;   ///< at least 1
};

/// The part of `rank` among `ranks`: contiguous, and at most one row larger than another's.
/// Throws invalid_argument when there are more ranks than rows.
[[nodiscard]] Slab slab_of(const Size& size, int ranks, int rank);

/// The field before the first iteration, boundary included: neighbours are unlike, so that each iteration changes all.
BEELINE_HOST_DEVICE inline float initial_value(std::size_t row, std::size_t column) {
  return apps::initial_value(0, static_cast<std::uint32_t>(row), column);
}

/// Gives the world of `config` the heaps that the grids need, one after the other; throws as `slab_of`, `apps::fit`.
///   verify  rank 0 holds the serial reference too
void fit(beeline::Config& config, const std::vector<Size>& sizes, bool verify, const apps::Machine& machine);

}  // namespace jacobi
