// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kernel that combines vectors which copies of engines have brought together, for one element type.

#include "beeline/collectives/impl/combine.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/engine_chunk.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

template <class T>
struct LocalReduceKernel {
  static constexpr unsigned max_threads = collective_threads;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, FetchedVectors vectors, T* destination,
                                      std::size_t count, Reduction reduction) const {
    if (has_failed(grid.block(), ctx)) return;
    // Few blocks, beside copies whose bandwidth they share: each thread has much on its way.
    combine_into<T, 4>({grid.thread_rank(), grid.size()}, vectors, destination, count, reduction);
  }
};

template <class T>
void launch_local_reduce_of(Team& team, const LaunchOptions& options, const LocalReduction& work) {
  launch(team, options, LocalReduceKernel<T>{}, work.vectors, static_cast<T*>(work.destination), work.count,
         work.reduction);
}

}  // namespace beeline::detail
