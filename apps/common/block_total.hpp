// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The sum of one value from each thread of a block.

#include "beeline/core/macros.hpp"

namespace apps {

/// Largest number of threads of a block on a GPU.
inline constexpr unsigned max_block_threads = 256;

/// Adds up `mine` over the block; the result is valid on thread 0. `scratch` [block.size()] may be used again after the
/// block's next sync. On a GPU shared memory replaces it, because every iteration ends with this sum and waits for it.
/// The order of additions depends on the block's size only.
template <class BlockGroup>
BEELINE_HOST_DEVICE double block_total(const BlockGroup& block, double* scratch, double mine) {
#if BEELINE_ON_GPU
  __shared__ double shared[max_block_threads];
  scratch = shared;
#endif
  constexpr unsigned lanes = 16;
  const unsigned thread = block.thread_rank(), columns = block.size() < lanes ? block.size() : lanes;
  scratch[thread] = mine;
  block.sync();
  if (thread < columns) {
    double column = 0;
    for (unsigned i = thread; i < block.size(); i += columns) column += scratch[i];
    scratch[thread] = column;
  }
  block.sync();
  double total = 0;
  if (thread == 0)
    for (unsigned i = 0; i < columns; ++i) total += scratch[i];
  return total;
}

}  // namespace apps
