// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kernels of collectives that reduce, for one element type: a kernel for each of the quick algorithms, since
/// registers are few, and one for all the others.

#include "beeline/collectives/allreduce.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

template <class T, Algorithm algorithm>
struct AllreduceKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr bool starts_early = true;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, T* destination,
                                      const T* source, std::size_t count, Reduction reduction) const {
    if constexpr (algorithm == Algorithm::packets_one_shot || algorithm == Algorithm::packets_two_shot) {
      // Comes while the lane's state comes.
      const auto own = AllreduceCall<T>{destination, source, count, reduction, grid.block_rank(), grid.blocks()}.own();
      const std::size_t first = grid.block().thread_rank() * (8 / sizeof(T));
      if (first < own.count) machine::prefetch(own.source + first);
    }
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

template <class T>
struct NamedReductionKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr std::size_t shared_bytes = sizeof(BulkBuffer);

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, ReductionPlan<T> plan,
                                      Algorithm algorithm) const {
    static_cast<void>(
        reduce_by_grid(grid, ctx, channel, plan, LaneCall{.algorithm = algorithm, .buffer = bulk_buffer()}));
  }
};

template <class T>
void launch_named_reduction(World& world, const LaunchOptions& options, const CollectiveChannel& channel,
                            const NamedReductionCall& call) {
  const ReductionPlan<T> plan{.destination = static_cast<T*>(call.vectors.destination),
                              .source = static_cast<const T*>(call.vectors.source),
                              .count = call.vectors.count,
                              .reduction = call.vectors.reduction,
                              .root = call.root,
                              .scatters = call.scatters,
                              .part_step = call.vectors.count};
  launch(world, options, NamedReductionKernel<T>{}, channel, plan, call.algorithm);
}

template <class T>
NamedReductionLauncher reduction_launcher_of() {
  return launch_named_reduction<T>;
}

}  // namespace beeline::detail
