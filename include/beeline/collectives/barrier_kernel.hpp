// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The barrier of a team as a kernel that other kernels launch.

#include "beeline/collectives/barrier.hpp"

#if BEELINE_COMPILES_CUDA

namespace beeline {

/// Threads of the kernel's block: one for each member that may be polled.
inline constexpr unsigned barrier_kernel_threads = max_ranks;

/// Ends when the kernels of all members have begun; what the members' earlier kernels did is then visible. One block.
/// A kernel may put it between its own end and the kernel that follows, without the CPU:
///
///   if (threadIdx.x == 0) {  // of one block
///     barrier_kernel<algorithm><<<1, barrier_kernel_threads, 0, cudaStreamTailLaunch>>>(ctx, channel);
///     following<<<blocks, threads, 0, cudaStreamTailLaunch>>>(...);
///   }
///
/// CUDA wants relocatable device code (-rdc=true) and its device runtime in a program whose kernels launch kernels;
/// nothing else of Beeline does. The launch of the first kernel says `waits`: its block keeps the place of this one.
/// What fails is recorded, and comes with `World::synchronize`.
/// Source: seed 000, 6.7.1, listings 6.4 and 6.5; CUDA programming guide, "Tail Launch Stream".
template <Algorithm algorithm>
__global__ void barrier_kernel(const __grid_constant__ Context ctx, CollectiveChannel channel) {
  Session session(Block{}, ctx, channel);
  static_cast<void>(barrier(session, {.algorithm = algorithm}));
}

}  // namespace beeline

#endif
