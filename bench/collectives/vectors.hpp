// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Vectors of collectives: fresh random data, and the check of every element of the result, on the rank's own device.

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/elements.hpp"
#include "harness/bench.hpp"
#include "harness/device_count.hpp"

namespace beeline::bench {

/// Source and destination of one call on one rank.
struct VectorPair {
  void *source, *destination;
  std::size_t count;  ///< elements of a piece: the count that collectives' functions get
  ElementType type;
};

/// The expected value of a piece of a result: a sum over the sources of some consecutive ranks. Element j of piece p is
/// the sum of elements `source_piece * count + j` of ranks [first + p * next_rank, ... + ranks).
struct Expectation {
  std::uint32_t first = 0, ranks = 1;
  std::uint32_t next_rank = 0;     ///< increment of the first rank from one piece of the result to the next
  std::uint32_t source_piece = 0;  ///< of each source
};

/// Fills and checks vectors of random integers from 0 to 3. Their sums over all ranks are exact in every type and
/// order, so that every element of a result has exactly one right value.
class VectorCheck {
 public:
  /// Collective.
  explicit VectorCheck(Bench& bench) : bench_(bench), wrong_(bench) {}

  /// Fills `vector` with the random values of this rank for `seed`. Blocking.
  void fill(void* vector, std::size_t count, ElementType type, std::uint64_t seed);
  /// Sets every byte of `vector` to a value that no result contains.
  void spoil(void* vector, std::size_t bytes);
  /// Whether the `pieces` of `vectors.destination` are the expected result for all ranks' vectors of `seed`.
  [[nodiscard]] bool holds(const VectorPair& vectors, std::uint32_t pieces, std::uint64_t seed,
                           const Expectation& expectation);

 private:
  Bench& bench_;
  DeviceCount wrong_;
};

}  // namespace beeline::bench
