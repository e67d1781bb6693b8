// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collectives in a loop inside one kernel, by one block of each rank.

#include "beeline/collectives/channel.hpp"
#include "beeline/core/algorithm.hpp"
#include "collectives/vectors.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench {

/// One block moves no more than this in useful time.
inline constexpr std::uint64_t most_kernel_bytes = 64 << 10;

struct KernelLoop {
  unsigned threads;
  Rounds rounds;
  Algorithm algorithm;
};

/// Collective, like those below. The batches' nanoseconds by this rank's clock. Throws invalid_argument for an
/// algorithm that kernels do not have.
[[nodiscard]] std::vector<double> allreduce_in_kernel(TimedKernel& timed, const KernelLoop& loop,
                                                      const CollectiveChannel& channel, const VectorPair& vectors);
[[nodiscard]] std::vector<double> allgather_in_kernel(TimedKernel& timed, const KernelLoop& loop,
                                                      const CollectiveChannel& channel, const VectorPair& vectors);
[[nodiscard]] std::vector<double> alltoall_in_kernel(TimedKernel& timed, const KernelLoop& loop,
                                                     const CollectiveChannel& channel, const VectorPair& vectors);

}  // namespace beeline::bench
