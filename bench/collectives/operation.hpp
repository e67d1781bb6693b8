// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The collective operations that move or combine vectors, as they are measured.

#include <cstdint>
#include <vector>

#include "beeline/collectives/operation.hpp"
#include "beeline/host/collectives.hpp"
#include "collectives/in_kernel.hpp"
#include "collectives/vectors.hpp"

namespace beeline::bench {

/// The root of those that have one.
inline constexpr int measured_root = 0;

/// Bytes on the busiest link for each byte of the measured size, n being the ranks.
/// Source: nccl-tests, doc/PERFORMANCE.md.
[[nodiscard]] constexpr double allreduce_bus_factor(int ranks) { return 2.0 * (ranks - 1) / ranks; }
[[nodiscard]] constexpr double pieces_bus_factor(int ranks) { return 1.0 * (ranks - 1) / ranks; }

/// An algorithm, and the sizes that it is measured with.
struct MeasuredAlgorithm {
  Algorithm algorithm;
  ByteRange sizes = {};
  bool symmetric = false;  ///< the caller asserts that vectors are, as they are; for GPUs, whose engines use it
};

/// What one rank puts in and gets, in pieces of `VectorPair::count` elements; 0: its vector is not looked at.
struct RankPart {
  std::uint32_t source_pieces, destination_pieces;
  Expectation expectation;  ///< of each piece that it gets
};

/// Puts a call on the stream that `call` says.
void start(const CollectiveShape& operation, Collectives& collectives, const VectorPair& vectors,
           const CollectiveCall& call);
[[nodiscard]] double bus_factor(const CollectiveShape& operation, int ranks);
[[nodiscard]] RankPart part_of(const CollectiveShape& operation, std::uint32_t rank, std::uint32_t ranks);

/// Those of calls on streams: `automatic`, all that the library has, and what a caller's assertion changes.
[[nodiscard]] std::vector<MeasuredAlgorithm> measured_algorithms(Operation operation);

}  // namespace beeline::bench
