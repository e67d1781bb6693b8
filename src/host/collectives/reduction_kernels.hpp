// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kernels of collectives that reduce, for one element type: a kernel for each algorithm, since registers are few.

#include "beeline/collectives/allreduce.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

template <class T, Algorithm algorithm>
struct AllreduceKernel {
  static constexpr unsigned max_threads = collective_threads;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, T* destination,
                                      const T* source, std::size_t count, Reduction reduction) const {
    // What fails is recorded where it fails.
    static_cast<void>(allreduce(grid, ctx, channel, destination, source, count, reduction, Timeout::none(), algorithm));
  }
};

template <class T, Algorithm algorithm>
void launch_allreduce(World& world, const LaunchOptions& options, const CollectiveChannel& channel,
                      const ReductionCall& call) {
  launch(world, options, AllreduceKernel<T, algorithm>{}, channel, static_cast<T*>(call.destination),
         static_cast<const T*>(call.source), call.count, call.reduction);
}

template <class T>
ReductionLauncher allreduce_launcher_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::packets_one_shot:
      return launch_allreduce<T, Algorithm::packets_one_shot>;
    case Algorithm::packets_two_shot:
      return launch_allreduce<T, Algorithm::packets_two_shot>;
    case Algorithm::two_shot:
      return launch_allreduce<T, Algorithm::two_shot>;
    default:
      return nullptr;
  }
}

}  // namespace beeline::detail
