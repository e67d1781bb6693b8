// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// NVSHMEM's collectives of all ranks: on a stream, and by one block inside a kernel.

#include <vector>

#include "beeline/collectives/operation.hpp"
#include "collectives/vectors.hpp"
#include "peers/nvshmem/nvshmem.hpp"

namespace beeline::bench::nvshmem {

/// Whether NVSHMEM has the operation as one call on streams.
[[nodiscard]] constexpr bool is_on_streams(Operation operation) {
  return operation == Operation::allreduce || operation == Operation::broadcast || operation == Operation::allgather ||
         operation == Operation::reduce_scatter || operation == Operation::alltoall;
}

/// Whether the operation is measured inside kernels, as Beeline's is.
[[nodiscard]] constexpr bool is_in_kernels(Operation operation) {
  return operation == Operation::allreduce || operation == Operation::allgather || operation == Operation::alltoall;
}

[[nodiscard]] constexpr bool is_sum(Operation operation) {
  return operation == Operation::allreduce || operation == Operation::reduce_scatter;
}

/// NVSHMEM's collectives, timed. Operations that only move data use words of 4 bytes, for which NVSHMEM is fastest.
class TimedCollectives {
 public:
  /// Collective.
  explicit TimedCollectives(Bench& bench);
  /// Enqueues one call on a CUDA stream: a sum, or a movement from rank 0. The vectors lie in NVSHMEM's heap.
  void start(Operation operation, const VectorPair& vectors, void* stream);
  /// Collective. Calls by a block of `threads` threads: nanoseconds of each batch, by this rank's clock.
  std::vector<double> in_block(Operation operation, const VectorPair& vectors, unsigned threads, Rounds rounds);

 private:
  Bench& bench_;
  Memory stamps_;
};

/// Enqueues a barrier that orders memory on a CUDA stream.
void start_barrier(void* stream);

}  // namespace beeline::bench::nvshmem
