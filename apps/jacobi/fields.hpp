// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One rank's rows and its halos, as kernels receive them.

#include <cstddef>
#include <cstdint>

#include "beeline/core/layout.hpp"
#include "beeline/core/macros.hpp"

namespace jacobi {

/// Points that a GPU thread updates at once, by accesses of 16 bytes.
inline constexpr int quad_points = 4;

/// A rank's slab, [rows + 2][row]: row 0 and row `rows` + 1 are halos, or the grid's boundary; so are column 0 and
/// column `columns` + 1. There are two buffers, which change roles in every iteration, so that neighbours write into
/// the halos of one while the other is read.
struct Fields {
  float *even, *odd;   ///< the field before iterations 0, 2, ... and before iterations 1, 3, ...
  std::ptrdiff_t row;  ///< floats from one row to the next, whole lines of 128 bytes
  int columns, rows;   ///< interior points of a row, interior rows of this rank
  int quads;           ///< quads of a row with its boundary points

  /// The field before iteration `iteration`, which iteration `iteration - 1` writes.
  [[nodiscard]] BEELINE_HOST_DEVICE float* before(std::uint64_t iteration) const {
    return (iteration & 1) == 0 ? even : odd;
  }
};

/// Some rows of a slab, or some quads of these rows; `last_row` and `last_quad` are exclusive.
struct Piece {
  int first_row = 0, last_row = 0, first_quad = 0, last_quad = 0;
  [[nodiscard]] BEELINE_HOST_DEVICE bool empty() const { return first_row >= last_row; }
};

/// The sides where slabs adjoin.
enum Side : unsigned { lower = 0, upper = 1 };
inline constexpr unsigned sides = 2;
[[nodiscard]] BEELINE_HOST_DEVICE constexpr unsigned opposite(unsigned side) { return 1 - side; }

/// The transfer across one side: this rank's outermost row goes to the peer's halo, and the peer's to this rank's.
struct Edge {
  std::uint32_t peer;     ///< `beeline::no_peer` at the grid's boundary
  int mine;               ///< outermost row of this rank
  std::ptrdiff_t theirs;  ///< offset of the halo in the peer's field, in floats
  [[nodiscard]] BEELINE_HOST_DEVICE bool open() const { return peer != beeline::no_peer; }
};

struct Edges {
  Edge side[sides];
};

/// One iteration in the numbering of kernels and signals.
struct Step {
  std::uint64_t iteration;  ///< since the fields were filled
  std::uint64_t first_tag;  ///< tags grow over all fills: the field before iteration n has tag `first_tag + n`
  bool communicate;         ///< false: compute only, to see what communication costs

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t tag() const { return first_tag + iteration; }
  /// Whether the neighbours send the halos that this iteration reads; the halos of the first iteration are initial
  /// data.
  [[nodiscard]] BEELINE_HOST_DEVICE bool needs_halos() const { return communicate && iteration > 0; }
};

}  // namespace jacobi
