// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collectives in a loop inside one kernel, by one block of each rank.

#include "beeline/collectives/channel.hpp"
#include "beeline/core/registry.hpp"
#include "collectives/vectors.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench {

/// Largest size for which a single block is useful.
inline constexpr std::uint64_t most_kernel_bytes = 64 << 10;

/// The operations in which every member waits for all others, so that all rounds take the same time.
inline constexpr Operations movements_in_kernels =
    operations_where([](const CollectiveShape& shape) { return shape.moves_all() && !shape.varies; });

/// The algorithms that are measured: one block has one session, with which other schedules only take longer.
[[nodiscard]] constexpr Algorithms measured_in_kernels(Operation operation) {
  if (!contains(movements_in_kernels | set_of(Operation::allreduce), operation)) return {};
  return set_of({Algorithm::automatic}) |
         algorithms_where(algorithms_of(operation, Control::device), [](const AlgorithmInfo& info) {
           return info.path == Path::peer && (info.protocol != Protocol::signal || info.schedule == Schedule::direct ||
                                              info.schedule == Schedule::two_shot);
         });
}

struct KernelLoop {
  unsigned threads;
  Rounds rounds;
  Algorithm algorithm;
};

/// Collective. The batches' nanoseconds by this rank's clock, for an operation that is measured inside kernels.
[[nodiscard]] std::vector<double> time_in_kernel(Operation operation, TimedKernel& timed, const KernelLoop& loop,
                                                 const CollectiveChannel& channel, const VectorPair& vectors);
[[nodiscard]] std::vector<double> time_movement(Operation operation, TimedKernel& timed, const KernelLoop& loop,
                                                const CollectiveChannel& channel, const VectorPair& vectors);

}  // namespace beeline::bench
