// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The computation: one Jacobi update of any part of a slab, shared by every method.
///
/// The update is bound by memory bandwidth: each point moves 14 arrays of 4 bytes once. So a thread takes four
/// neighbouring points (16-byte accesses), issues all loads of a plane before it uses any, and goes up through the
/// planes with the pressure of three planes in registers. Multiplications and additions are never contracted (compile
/// options), so a point has the same bits with any number of ranks and in every method.

#include <cstddef>

#include "fields.hpp"
#include "problem.hpp"

namespace himeno {

struct alignas(16) Vector {
  float cell[vector_cells];
};

/// The pressure around four points in one plane: rows y - 1 to y + 1, points x - 1 to x + 4.
struct Window {
  float row[3][vector_cells + 2];
};

struct Coefficients {
  Vector a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bnd, wrk1;
};

/// How a launch divides a range of planes among its blocks: each item is a tile (part of a plane) in a chunk of planes.
struct Tiling {
  unsigned tile_vectors;  ///< vectors that a block processes together, an equal share for each thread
  unsigned tiles;         ///< number of tiles that cover the interior rows of a plane
  unsigned chunks;        ///< number of parts of the range of planes
  int planes_at_once;     ///< planes that a thread goes up through before it takes its next vector
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned items() const { return tiles * chunks; }
};

namespace detail {

BEELINE_HOST_DEVICE inline Vector load(const float* from) { return *reinterpret_cast<const Vector*>(from); }

/// Whether four points have neighbours in their row. At the ends of a row the neighbours in memory lie in other rows
/// or, at the ends of a plane, in a halo that may not have arrived; no interior point needs them.
struct RowNeighbours {
  bool left, right;
};

BEELINE_HOST_DEVICE inline Window load_window(const float* p, std::ptrdiff_t row, RowNeighbours has) {
  Window window;
  for (int y = 0; y < 3; ++y) {
    const float* from = p + (y - 1) * row;
    const Vector middle = load(from);
    window.row[y][0] = has.left ? from[-1] : 0.0f;
    for (int cell = 0; cell < vector_cells; ++cell) window.row[y][cell + 1] = middle.cell[cell];
    window.row[y][vector_cells + 1] = has.right ? from[vector_cells] : 0.0f;
  }
  return window;
}

BEELINE_HOST_DEVICE inline Coefficients load_coefficients(const Fields& f, std::ptrdiff_t n) {
  return {load(f.a0 + n), load(f.a1 + n), load(f.a2 + n), load(f.a3 + n), load(f.b0 + n),  load(f.b1 + n),
          load(f.b2 + n), load(f.c0 + n), load(f.c1 + n), load(f.c2 + n), load(f.bnd + n), load(f.wrk1 + n)};
}

/// The residual of one point, in the order of operations of the official program.
BEELINE_HOST_DEVICE inline float residual(const Window& below, const Window& at, const Window& above,
                                          const Coefficients& k, int cell) {
  const int x = cell + 1;
  const float s0 =
      k.a0.cell[cell] * at.row[1][x + 1] + k.a1.cell[cell] * at.row[2][x] + k.a2.cell[cell] * above.row[1][x] +
      k.b0.cell[cell] * (at.row[2][x + 1] - at.row[0][x + 1] - at.row[2][x - 1] + at.row[0][x - 1]) +
      k.b1.cell[cell] * (above.row[2][x] - above.row[0][x] - below.row[2][x] + below.row[0][x]) +
      k.b2.cell[cell] * (above.row[1][x + 1] - above.row[1][x - 1] - below.row[1][x + 1] + below.row[1][x - 1]) +
      k.c0.cell[cell] * at.row[1][x - 1] + k.c1.cell[cell] * at.row[0][x] + k.c2.cell[cell] * below.row[1][x] +
      k.wrk1.cell[cell];
  return (s0 * k.a3.cell[cell] - at.row[1][x]) * k.bnd.cell[cell];
}

}  // namespace detail

/// Updates one vector of points, at offset `point` of each plane, upwards through the planes `part`.
///   from   pressure before the iteration
///   x      of the vector's first point
///   store  store(offset, vector) stores four updated points
/// Returns the sum of the squared residuals of the interior points among them.
template <class Store>
BEELINE_HOST_DEVICE double update_column(const Fields& f, const float* from, std::ptrdiff_t point, int x, Planes part,
                                         const Store& store) {
  const std::ptrdiff_t row = f.row, plane = f.plane();
  const detail::RowNeighbours has{x > 0, x + vector_cells < f.row};
  std::ptrdiff_t n = part.first * plane + point;
  Window below = detail::load_window(from + n - plane, row, has);
  Window at = detail::load_window(from + n, row, has);
  double gosa = 0;
  for (int z = part.first; z < part.last; ++z, n += plane) {
    const Window above = detail::load_window(from + n + plane, row, has);
    const Coefficients k = detail::load_coefficients(f, n);
    Vector updated;
    for (int cell = 0; cell < vector_cells; ++cell) {
      const bool interior = x + cell >= 1 && x + cell < f.x - 1;
      const float ss = interior ? detail::residual(below, at, above, k, cell) : 0.0f;
      gosa += static_cast<double>(ss) * static_cast<double>(ss);
      updated.cell[cell] = at.row[1][cell + 1] + omega * ss;
    }
    store(n, updated);
    below = at;
    at = above;
  }
  return gosa;
}

/// Updates the planes `part` of one tile. Every thread of `block` calls it; each returns its part of gosa.
template <class BlockGroup, class Store>
BEELINE_HOST_DEVICE double update_tile(const BlockGroup& block, const Fields& f, const Tiling& tiling,
                                       const float* from, unsigned tile, Planes part, const Store& store) {
  const unsigned row_vectors = static_cast<unsigned>(f.row / vector_cells);
  const unsigned vectors = row_vectors * static_cast<unsigned>(f.y - 2);
  const unsigned end = (tile + 1) * tiling.tile_vectors < vectors ? (tile + 1) * tiling.tile_vectors : vectors;
  const unsigned share = (tiling.tile_vectors + block.size() - 1) / block.size();
  const unsigned first = tile * tiling.tile_vectors + block.thread_rank() * share;
  const unsigned last = first + share < end ? first + share : end;
  double gosa = 0;
  for (int z = part.first; z < part.last; z += tiling.planes_at_once) {
    const Planes some{z, z + tiling.planes_at_once < part.last ? z + tiling.planes_at_once : part.last};
    for (unsigned vector = first; vector < last; ++vector)
      gosa += update_column(f, from, f.row + static_cast<std::ptrdiff_t>(vector) * vector_cells,
                            static_cast<int>(vector % row_vectors) * vector_cells, some, store);
  }
  return gosa;
}

/// The planes of chunk `item / tiles` of `all`.
[[nodiscard]] BEELINE_HOST_DEVICE inline Planes planes_of_item(const Tiling& tiling, Planes all, unsigned item) {
  const long planes = all.last - all.first, chunk = item / tiling.tiles, chunks = tiling.chunks;
  return {all.first + static_cast<int>(planes * chunk / chunks),
          all.first + static_cast<int>(planes * (chunk + 1) / chunks)};
}

/// Stores updated points in the pressure buffer of the next iteration.
struct StoreHere {
  float* to;
  BEELINE_HOST_DEVICE void operator()(std::ptrdiff_t n, const Vector& updated) const {
    *reinterpret_cast<Vector*>(to + n) = updated;
  }
};

/// This block's share of an update of `all`. Every thread of the grid calls it; each returns its part of gosa.
template <class Grid>
BEELINE_HOST_DEVICE double update_planes(const Grid& grid, const Fields& f, const Tiling& tiling, int iteration,
                                         Planes all) {
  const StoreHere store{f.pressure(iteration + 1)};
  double gosa = 0;
  for (unsigned item = grid.block_rank(); item < tiling.items(); item += grid.blocks())
    gosa += update_tile(grid.block(), f, tiling, f.pressure(iteration), item % tiling.tiles,
                        planes_of_item(tiling, all, item), store);
  return gosa;
}

/// Updates the planes `part` of one tile. Planes at open sides come first, so that they travel while the rest is
/// computed.
///   update(planes)   updates these planes
///   publish(side)    called when the outermost plane of `side` is updated
///   phase            first phase: 0, or `sides` to update the edges together with the rest
template <class Update, class Publish>
BEELINE_HOST_DEVICE void edges_first(const Edges& edges, Planes part, const Update& update, const Publish& publish,
                                     unsigned phase = 0) {
  Planes rest = part;
  BEELINE_NO_UNROLL
  for (; phase <= sides; ++phase) {
    const bool edge = phase < sides;
    if (edge && !edges.touched(phase, part)) continue;
    Planes some = rest;
    if (edge) some = phase == lower ? Planes{rest.first, rest.first + 1} : Planes{rest.last - 1, rest.last};
    if (!rest.empty()) update(some);  // the only plane of a slab was updated as the lower side's
    if (!edge) continue;
    publish(phase);
    phase == lower ? ++rest.first : --rest.last;
  }
}

}  // namespace himeno
