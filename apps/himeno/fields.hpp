// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One rank's arrays and its halos, as kernels receive them.

#include <cstddef>
#include <cstdint>

#include "beeline/core/layout.hpp"
#include "beeline/core/macros.hpp"

namespace himeno {

/// Cells that a thread updates at once. Rows are padded to a multiple, so that each vector is an aligned 16-byte
/// access.
inline constexpr int vector_cells = 4;

/// A rank's slab. Every array is [planes + 2][y][row]; the first x floats of a row are points. Planes 0 and `planes` +
/// 1 are halos, or the grid's boundary. The pressure has two buffers that change roles every iteration (the official
/// program copies instead), so its halos are double too.
struct Fields {
  const float *a0, *a1, *a2, *a3, *b0, *b1, *b2, *c0, *c1, *c2, *bnd, *wrk1;
  float *even, *odd;  ///< pressure before iterations 0, 2, ... and before iterations 1, 3, ...
  int x, y;           ///< points of a plane, boundary included
  int row;            ///< floats from one row to the next
  int planes;         ///< interior planes of this rank

  [[nodiscard]] BEELINE_HOST_DEVICE std::ptrdiff_t plane() const { return static_cast<std::ptrdiff_t>(row) * y; }
  /// The pressure before iteration `iteration`, and the buffer that iteration `iteration - 1` writes.
  [[nodiscard]] BEELINE_HOST_DEVICE float* pressure(int iteration) const { return (iteration & 1) == 0 ? even : odd; }
};

/// The consecutive planes [first, last) of a slab, by local number.
struct Planes {
  int first, last;
  [[nodiscard]] BEELINE_HOST_DEVICE bool empty() const { return first >= last; }
};

/// The sides where slabs adjoin.
enum Side : unsigned { lower = 0, upper = 1 };
inline constexpr unsigned sides = 2;
[[nodiscard]] BEELINE_HOST_DEVICE constexpr unsigned opposite(unsigned side) { return 1 - side; }

/// The transfer across one side: this rank's outermost plane goes to the peer's halo, and the peer's to this rank's.
struct Edge {
  std::uint32_t peer;     ///< `beeline::no_peer` at the grid's boundary
  std::ptrdiff_t mine;    ///< offset of the outermost plane in a pressure buffer
  std::ptrdiff_t halo;    ///< offset of this rank's halo plane
  std::ptrdiff_t theirs;  ///< offset of the peer's halo plane in the peer's buffer
  [[nodiscard]] BEELINE_HOST_DEVICE bool open() const { return peer != beeline::no_peer; }
};

struct Edges {
  Edge side[sides];
  int planes;            ///< interior planes of this rank
  std::ptrdiff_t plane;  ///< floats of a plane

  /// Whether `part` contains the outermost plane of the side, and the side has a peer.
  [[nodiscard]] BEELINE_HOST_DEVICE bool touched(unsigned which, const Planes& part) const {
    if (part.empty() || !side[which].open()) return false;
    return which == lower ? part.first == 1 : part.last == planes + 1;
  }
};

/// The position of a kernel in the iterations.
struct Step {
  int iteration;            ///< of this run, from 0
  std::uint64_t first_tag;  ///< tags grow over all runs; the field before iteration n has tag `first_tag + n`
  bool communicate;         ///< false: compute only, to see what communication costs

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t tag() const {
    return first_tag + static_cast<std::uint64_t>(iteration);
  }
  /// Whether the neighbours send the halos that this iteration reads; the halos of the first are initial data.
  [[nodiscard]] BEELINE_HOST_DEVICE bool needs_halos() const { return communicate && iteration > 0; }
};

}  // namespace himeno
