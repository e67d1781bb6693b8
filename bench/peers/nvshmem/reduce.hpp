// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// NVSHMEM's sums over all ranks: on a stream, and by one block inside a kernel.

#include <vector>

#include "collectives/vectors.hpp"
#include "peers/nvshmem/nvshmem.hpp"

namespace beeline::bench::nvshmem {

class TimedReduction {
 public:
  /// Collective.
  explicit TimedReduction(Session& session);
  /// Puts one call on a CUDA stream. The vectors lie in NVSHMEM's heap.
  void start(const VectorPair& vectors, void* stream);
  /// Collective. Nanoseconds of each batch by this rank's clock, of a block of `threads` threads.
  std::vector<double> in_block(const VectorPair& vectors, unsigned threads, Rounds rounds);

 private:
  Session& session_;
  Memory stamps_;
};

}  // namespace beeline::bench::nvshmem
