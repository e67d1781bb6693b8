// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The collective operations that move or combine vectors, as the benchmark measures them.

#include <cstdint>
#include <vector>

#include "beeline/collectives/operation.hpp"
#include "beeline/host/collectives.hpp"
#include "collectives/in_kernel.hpp"
#include "collectives/vectors.hpp"

namespace beeline::bench {

/// The root of the operations that have a root.
inline constexpr int measured_root = 0;

/// Bytes on the busiest link for each byte of the measured size; n is the number of ranks.
/// Source: nccl-tests, doc/PERFORMANCE.md.
[[nodiscard]] constexpr double allreduce_bus_factor(int ranks) { return 2.0 * (ranks - 1) / ranks; }
[[nodiscard]] constexpr double pieces_bus_factor(int ranks) { return 1.0 * (ranks - 1) / ranks; }

/// An algorithm, and the sizes that it is measured with.
struct MeasuredAlgorithm {
  Algorithm algorithm;
  ByteRange sizes = {};
  bool symmetric = false;  ///< the caller asserts symmetric vectors (true here); for GPUs, whose engines use it
};

/// The part of one rank, in pieces of `VectorPair::count` elements; a vector of 0 pieces is not accessed.
struct RankPart {
  std::uint32_t source_pieces, destination_pieces;
  Expectation expectation;  ///< of each piece of its result
};

/// Enqueues a call on the stream that `call` names.
void start(const CollectiveShape& operation, Collectives& collectives, const VectorPair& vectors,
           const CollectiveCall& call);
[[nodiscard]] double bus_factor(const CollectiveShape& operation, int ranks);
[[nodiscard]] RankPart part_of(const CollectiveShape& operation, std::uint32_t rank, std::uint32_t ranks);

/// The algorithms of calls on streams: `automatic`, all algorithms of the library, and `automatic` with symmetric
/// vectors.
[[nodiscard]] std::vector<MeasuredAlgorithm> measured_algorithms(Operation operation);

}  // namespace beeline::bench
