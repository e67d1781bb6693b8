// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kernel that combines vectors on one rank, for one element type.

#include "beeline/collectives/local_reduce.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

template <class T>
struct LocalReduceKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, LocalVectors<T> vectors, T* destination,
                                      std::size_t count, Reduction reduction) const {
    reduce_local(vectors, {grid.thread_rank(), grid.size()}, destination, count, reduction);
  }
};

template <class T>
void launch_local_reduce_of(World& world, const LaunchOptions& options, const LocalReduction& work) {
  const LocalVectors<T> vectors{.own = static_cast<const T*>(work.own),
                                .others = reinterpret_cast<const T*>(work.others),
                                .stride = work.stride_bytes / sizeof(T),
                                .rank = work.rank,
                                .members = work.members};
  launch(world, options, LocalReduceKernel<T>{}, vectors, static_cast<T*>(work.destination), work.count,
         work.reduction);
}

}  // namespace beeline::detail
