// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The collective operations that are measured, one row each.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "beeline/collectives/elements.hpp"
#include "beeline/host/collectives.hpp"
#include "collectives/in_kernel.hpp"
#include "collectives/vectors.hpp"

namespace beeline::bench {

/// Bytes on the busiest link for each byte of the vector, n being the ranks. Source: nccl-tests, doc/PERFORMANCE.md.
[[nodiscard]] constexpr double allreduce_bus_factor(int ranks) { return 2.0 * (ranks - 1) / ranks; }

enum class CollectiveKind { allreduce };

/// An algorithm, and the vectors that it is measured with: far from its use it only takes time.
struct MeasuredAlgorithm {
  Algorithm algorithm;
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max(), least_bytes = 0;
  bool streams_only = false;  ///< not in graphs, nor in kernels
};

struct CollectiveOperation {
  CollectiveKind kind;
  const char* name;
  double (*bus_factor)(int ranks);
  /// What every element of the result is.
  Expectation (*expectation)(int ranks);
  void (*start)(Collectives&, const VectorPair&, const CollectiveCall&);
  /// The algorithm and blocks that a call takes.
  CollectiveCall (*choice)(const Collectives&, const VectorPair&, const CollectiveCall&);
  /// The same by one block of each rank, in a loop inside one kernel.
  std::vector<double> (*in_kernel)(TimedKernel&, const KernelLoop&, const CollectiveChannel&, const VectorPair&);
  std::vector<MeasuredAlgorithm> algorithms;
};

[[nodiscard]] const std::vector<CollectiveOperation>& collective_operations();

}  // namespace beeline::bench
