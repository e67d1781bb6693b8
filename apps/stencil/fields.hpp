// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The structures that kernels get: where planes are, and which of them to compute.

#include <cstddef>

#include "problem.hpp"

namespace stencil {

/// The fields of a slab before and after a step: addresses of stored points, row by row and plane by plane. The planes
/// below and above the slab may be in the slab's own halos, or in the memory of the neighbours.
struct Planes {
  const float* below;  ///< [radius] planes below the slab
  const float* own;    ///< planes of the slab
  const float* above;  ///< [radius] planes above the slab
  float* next;         ///< planes of the slab after the step
};

/// The shape of a slab.
struct Shape {
  std::size_t x, y, planes;  ///< interior points and planes
  std::size_t width, plane;  ///< stored points of a row and of a plane
};

/// Interior planes of a slab: `chunks` runs of at most `length` planes, whose first planes are `stride` apart.
struct Part {
  std::size_t first, stride, length, chunks;
  std::size_t end;  ///< no plane from here on belongs to it
};

}  // namespace stencil
