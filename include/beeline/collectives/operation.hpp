// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The collective operations by name, and what a call of one says of itself to the other members.

#include <cstdint>

#include "beeline/collectives/algorithm.hpp"
#include "beeline/collectives/reduction.hpp"

namespace beeline {

enum class CollectiveOperation : std::uint32_t {
  none,
  barrier,
  broadcast,
  scatter,
  gather,
  allgather,
  reduce,
  allreduce,
  reduce_scatter,
  alltoall,
  alltoallv
};
inline constexpr std::uint32_t collective_operations = 11;

/// The operation's name as it appears in messages, in Python and in JSON.
[[nodiscard]] constexpr const char* name(CollectiveOperation operation) {
  constexpr const char* names[] = {"none",   "barrier",   "broadcast",      "scatter",  "gather",   "allgather",
                                   "reduce", "allreduce", "reduce_scatter", "alltoall", "alltoallv"};
  const auto index = static_cast<std::uint32_t>(operation);
  return index < collective_operations ? names[index] : "unknown";
}

/// What all members of a call have in common.
struct CallSignature {
  CollectiveOperation operation = CollectiveOperation::none;
  ElementType type = ElementType::uint8;
  Reduction reduction = Reduction::sum;
  Algorithm algorithm = Algorithm::automatic;  ///< of a barrier, the number of its BarrierAlgorithm
  std::uint32_t root = 0;
  std::uint64_t count = 0;  ///< elements on this lane

  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t packed() const {
    return std::uint64_t{static_cast<std::uint32_t>(operation)} | std::uint64_t{static_cast<std::uint32_t>(type)} << 8 |
           std::uint64_t{static_cast<std::uint32_t>(reduction)} << 16 |
           std::uint64_t{static_cast<std::uint32_t>(algorithm)} << 24 | std::uint64_t{root} << 32;
  }
};

/// The signature that `packed` said, but for its count.
[[nodiscard]] constexpr CallSignature unpacked_call(std::uint64_t word) {
  return {.operation = static_cast<CollectiveOperation>(word & 0xff),
          .type = static_cast<ElementType>(word >> 8 & 0xff),
          .reduction = static_cast<Reduction>(word >> 16 & 0xff),
          .algorithm = static_cast<Algorithm>(word >> 24 & 0xff),
          .root = static_cast<std::uint32_t>(word >> 32),
          .count = 0};
}

}  // namespace beeline
