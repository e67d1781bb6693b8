// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: a grid of points, in which each point becomes the mean of its four neighbours, and the ranks' shares of
/// rows.

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
  /// Points including the boundary.
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

/// The slab of `rank` among `ranks`: contiguous; sizes of slabs differ by at most one row.
/// Throws invalid_argument when there are more ranks than rows.
[[nodiscard]] Slab slab_of(const Size& size, int ranks, int rank);

/// The field before the first iteration, boundary included: neighbouring values differ, so that each iteration changes
/// all points.
BEELINE_HOST_DEVICE inline float initial_value(std::size_t row, std::size_t column) {
  return apps::initial_value(0, static_cast<std::uint32_t>(row), column);
}

/// Sets the heap sizes of `config` for the grids, which are measured one after the other; throws as `slab_of` and
/// `apps::fit` do.
///   verify  rank 0 also holds the serial reference
void fit(beeline::Config& config, const std::vector<Size>& sizes, bool verify, const apps::Machine& machine);

}  // namespace jacobi
