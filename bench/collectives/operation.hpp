// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The collective operations that move or combine vectors, as they are measured: one row each.

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

/// What a rank, or only the root, has on one side of the call: a vector, which is one piece, or a piece for each rank.
enum class Side { vector, pieces, roots_vector, roots_pieces };
[[nodiscard]] constexpr bool has_pieces(Side side) { return side == Side::pieces || side == Side::roots_pieces; }
[[nodiscard]] constexpr bool is_of_root(Side side) { return side >= Side::roots_vector; }

struct MeasuredOperation {
  Operation kind;
  Side source, destination;
  void (*start)(Collectives&, const VectorPair&, const CollectiveCall&);
  /// The same by one block of each rank, in a loop inside one kernel; nullptr: not measured.
  std::vector<double> (*in_kernel)(TimedKernel&, const KernelLoop&, const CollectiveChannel&,
                                   const VectorPair&) = nullptr;

  [[nodiscard]] bool reduces() const {
    return kind == Operation::allreduce || kind == Operation::reduce || kind == Operation::reduce_scatter;
  }
  /// Whether the measured size is that of a vector with a piece for each rank; otherwise the vector is one piece.
  [[nodiscard]] bool has_pieces() const { return bench::has_pieces(source) || bench::has_pieces(destination); }
  [[nodiscard]] double bus_factor(int ranks) const;
  [[nodiscard]] RankPart part(std::uint32_t rank, std::uint32_t ranks) const;
};

[[nodiscard]] const std::vector<MeasuredOperation>& measured_operations();
/// Those of calls on streams: `automatic`, all that the library has, and what a caller's assertion changes.
[[nodiscard]] std::vector<MeasuredAlgorithm> measured_algorithms(Operation operation);

}  // namespace beeline::bench
