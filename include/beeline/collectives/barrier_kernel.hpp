// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The barrier of a team as a kernel that other kernels launch.

#include "beeline/collectives/barrier.hpp"

#if BEELINE_COMPILES_CUDA

namespace beeline {

/// Threads of the kernel's block: one for each member that the kernel may poll.
inline constexpr unsigned barrier_kernel_threads = max_node_ranks;

/// A kernel of one block that ends when the barrier kernels of all members have begun. The effects of the members'
/// earlier kernels are then visible. A kernel can launch the barrier kernel between itself and a following kernel,
/// without the CPU:
///
///   if (threadIdx.x == 0) {  // in one block only
///     barrier_kernel<algorithm><<<1, barrier_kernel_threads, 0, cudaStreamTailLaunch>>>(ctx, channel);
///     following<<<blocks, threads, 0, cudaStreamTailLaunch>>>(...);
///   }
///
/// Programs whose kernels launch kernels need relocatable device code (-rdc=true) and CUDA's device runtime. No other
/// part of Beeline needs these. Launch the first kernel with `LaunchOptions::waits`, which reserves room on the device
/// for a block; the barrier kernel then uses that room. Failures are recorded, and `World::synchronize` throws them.
/// Source: seed 000, 6.7.1, listings 6.4 and 6.5; CUDA programming guide, "Tail Launch Stream".
template <Algorithm algorithm>
__global__ void barrier_kernel(const __grid_constant__ Context ctx, CollectiveChannel channel) {
  Session session(Block{}, ctx, channel);
  static_cast<void>(barrier(session, {.algorithm = algorithm}));
}

}  // namespace beeline

#endif
