// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Prefetching coefficients while a block can do nothing else: coefficients depend on no other block and no other rank.

#include "beeline/core/macros.hpp"
#include "sweep.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda/annotated_ptr>
#endif

namespace himeno {

/// Prefetches a tile's coefficients in one plane into the GPU's second-level cache, without waiting; does nothing on
/// CPUs.
template <class BlockGroup>
BEELINE_HOST_DEVICE void prefetch_coefficients(const BlockGroup& block, const Fields& f, const Tiling& tiling,
                                               unsigned tile, int plane) {
#if BEELINE_ON_GPU
  constexpr std::ptrdiff_t line_bytes = 128, line = line_bytes / sizeof(float);
  const auto tile_floats = static_cast<std::ptrdiff_t>(tiling.tile_vectors) * vector_cells;
  const std::ptrdiff_t first = f.row + tile * tile_floats, end = f.plane() - f.row;
  const std::ptrdiff_t last = first + tile_floats < end ? first + tile_floats : end;
  for (std::ptrdiff_t n = first + block.thread_rank() * line; n < last; n += block.size() * line)
    for (const float* array : {f.a0, f.a1, f.a2, f.a3, f.b0, f.b1, f.b2, f.c0, f.c1, f.c2, f.bnd, f.wrk1})
      cuda::apply_access_property(array + plane * f.plane() + n, line_bytes, cuda::access_property::normal{});
#else
  static_cast<void>(block), static_cast<void>(f), static_cast<void>(tiling), static_cast<void>(tile),
      static_cast<void>(plane);
#endif
}

}  // namespace himeno
