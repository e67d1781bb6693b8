// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The computation: one step of any planes of a slab, shared by every method. Compilers must not contract it to fused
/// multiply-adds, which round differently (CMakeLists.txt): a point has the same bits everywhere.

#include "beeline/core/macros.hpp"
#include "fields.hpp"

namespace stencil {

/// Points of a row, and rows, that a GPU block updates together in each plane.
inline constexpr unsigned tile_x = 64, tile_y = 4;

namespace detail {

/// The value after a step.
///   sums  at distances 1 to 4, each the sum of the six points on the three axes
BEELINE_HOST_DEVICE inline float updated(float point, float sum1, float sum2, float sum3, float sum4) {
  constexpr float weights[] = {3 * (-205.0f / 72), 8.0f / 5, -1.0f / 5, 8.0f / 315, -1.0f / 560};
  float curvature = weights[0] * point;
  curvature += weights[1] * sum1;
  curvature += weights[2] * sum2;
  curvature += weights[3] * sum3;
  curvature += weights[4] * sum4;
  return point + 0.0625f * curvature;
}

/// Stored plane `z`, counted from the slab's first plane on: -4 to planes + 3.
BEELINE_HOST_DEVICE inline const float* plane_at(const Planes& planes, const Shape& shape, std::ptrdiff_t z) {
  const auto count = static_cast<std::ptrdiff_t>(shape.planes), points = static_cast<std::ptrdiff_t>(shape.plane);
  constexpr auto halo = static_cast<std::ptrdiff_t>(radius);
  if (z < 0) return planes.below + (z + halo) * points;
  return z < count ? planes.own + z * points : planes.above + (z - count) * points;
}

/// Updates the points at `at` of planes [first, last), upwards: each is loaded once from the planes above.
BEELINE_HOST_DEVICE inline void update_column(const Planes& planes, const Shape& shape, std::size_t at,
                                              std::size_t first, std::size_t last) {
  constexpr auto halo = static_cast<int>(radius);
  const auto width = static_cast<std::ptrdiff_t>(shape.width);
  float column[2 * radius + 1];  // the point and the points below and above it
  const auto start = static_cast<std::ptrdiff_t>(first);
  for (int k = 1; k <= 2 * halo; ++k) column[k] = plane_at(planes, shape, start + k - halo - 1)[at];
  for (auto z = start; z < static_cast<std::ptrdiff_t>(last); ++z) {
    for (int k = 0; k < 2 * halo; ++k) column[k] = column[k + 1];
    column[2 * halo] = plane_at(planes, shape, z + halo)[at];
    const float* here = planes.own + static_cast<std::size_t>(z) * shape.plane + at;
    const auto sum = [&](int d) {
      return ((here[-d] + here[d]) + (here[-d * width] + here[d * width])) + (column[halo - d] + column[halo + d]);
    };
    planes.next[static_cast<std::size_t>(z) * shape.plane + at] = updated(column[halo], sum(1), sum(2), sum(3), sum(4));
  }
}

/// Updates one row of plane `z`.
BEELINE_HOST_DEVICE inline void update_row(const Planes& planes, const Shape& shape, std::size_t y, std::size_t z) {
  const std::size_t at = (y + radius) * shape.width + radius;
  const auto width = static_cast<std::ptrdiff_t>(shape.width);
  const float* here = planes.own + z * shape.plane + at;
  const float *below[radius], *above[radius];
  for (std::size_t d = 1; d <= radius; ++d) {
    const auto distance = static_cast<std::ptrdiff_t>(d), middle = static_cast<std::ptrdiff_t>(z);
    below[d - 1] = plane_at(planes, shape, middle - distance) + at;
    above[d - 1] = plane_at(planes, shape, middle + distance) + at;
  }
  float* next = planes.next + z * shape.plane + at;
  for (std::ptrdiff_t x = 0; x < static_cast<std::ptrdiff_t>(shape.x); ++x) {
    const auto sum = [&](std::ptrdiff_t d) {
      return ((here[x - d] + here[x + d]) + (here[x - d * width] + here[x + d * width])) +
             (below[d - 1][x] + above[d - 1][x]);
    };
    next[x] = updated(here[x], sum(1), sum(2), sum(3), sum(4));
  }
}

}  // namespace detail

/// One step of a part of a slab, as a kernel.
struct Update {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Planes& planes, const Shape& shape, const Part& part) const {
#if BEELINE_ON_GPU
    // A thread marches through the planes of a chunk, at one point of each.
    const std::size_t across = (shape.x + tile_x - 1) / tile_x, down = (shape.y + tile_y - 1) / tile_y;
    const unsigned thread = grid.block().thread_rank();
    for (std::size_t tile = grid.block_rank(); tile < across * down * part.chunks; tile += grid.blocks()) {
      const std::size_t x = tile % across * tile_x + thread % tile_x;
      const std::size_t y = tile / across % down * tile_y + thread / tile_x;
      const std::size_t first = part.first + tile / (across * down) * part.stride, last = first + part.length;
      if (x < shape.x && y < shape.y)
        detail::update_column(planes, shape, (y + radius) * shape.width + radius + x, first,
                              last < part.end ? last : part.end);
    }
#else
    for (std::size_t row = grid.thread_rank(); row < shape.y * part.length * part.chunks; row += grid.size()) {
      const std::size_t index = row / shape.y, z = part.first + index / part.length * part.stride + index % part.length;
      if (z < part.end) detail::update_row(planes, shape, row % shape.y, z);
    }
#endif
  }
};

}  // namespace stencil
