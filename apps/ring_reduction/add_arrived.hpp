// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The local sum for schemes whose copies are made outside kernels: a kernel that only computes.

#include "sum.hpp"
#include "vectors.hpp"

namespace ring_reduction {

/// Adds `count` elements of `arrived` to `values`.
struct AddArrived {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, float* values, const float* arrived,
                                      std::size_t count) const {
    store_sum(grid.thread_rank(), grid.size(), {values, arrived, values, nullptr, count});
  }
};

/// Enqueues the addition of a reduce-scatter transfer that has arrived in the inbox, on the rank's default stream.
inline void enqueue_sum(Vectors& vectors, const Transfer& transfer) {
  const auto [first, count] = transfer.receives;
  if (count == 0) return;
  beeline::launch(vectors.world(), {.blocks = blocks_for(vectors.world(), count), .threads = block_threads},
                  AddArrived{}, vectors.data() + first, static_cast<const float*>(vectors.inbox() + transfer.inbox),
                  count);
}

/// The destination of a transfer on the next rank: its inbox, or, in the all-gather, its vector.
inline float* destination_of(const Vectors& vectors, const Transfer& transfer, std::uint32_t next_rank) {
  const int next = static_cast<int>(next_rank);
  return transfer.reduces ? vectors.world().at(vectors.inbox(), next) + transfer.inbox
                          : vectors.world().at(vectors.data(), next) + transfer.sends.first;
}

}  // namespace ring_reduction
