// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How operations go about it, by name. What each algorithm is, and which operations have it: registry.hpp.

#include <cstdint>

#include "beeline/core/macros.hpp"

namespace beeline {

/// A schedule, a protocol and a path by one name.
enum class Algorithm : std::uint32_t {
  automatic,  ///< what selection/preferences.hpp says
  ll_one_shot,
  ll_two_shot,
  ll128_one_shot,
  ll128_two_shot,
  two_shot,
  read,
  gather,
  gather_cast,
  allgather,
  alltoall_gather,
  alltoall_allgather,
  tree,
  ll,
  ll128,
  peer,
  bulk,
  copy_engine,
  staged_sequential,
  staged_pipelined
};
inline constexpr std::uint32_t algorithms = 20;

/// The algorithm's name as it appears in messages, in Python and in JSON.
[[nodiscard]] const char* name(Algorithm algorithm) noexcept;

/// Whether it sends lines, so is there only where `no_ll128_reason` (host/packets.hpp) finds no reason against it.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_ll128(Algorithm algorithm) {
  return algorithm == Algorithm::ll128_one_shot || algorithm == Algorithm::ll128_two_shot ||
         algorithm == Algorithm::ll128;
}

/// How members meet.
enum class BarrierAlgorithm : std::uint32_t {
  alltoall,       ///< each tells all: one step
  flat,           ///< all check in with member 0, who checks all out: two steps, fewest words (000, 6.7)
  dissemination,  ///< in step k each tells the member 2^k behind it: log2 steps of one word each
  hierarchical    ///< the blocks of each grid first, then the members as in alltoall (000, 6.7.1)
};
inline constexpr std::uint32_t barrier_algorithms = 4;

/// The algorithm's name as it appears in messages, in Python and in JSON.
[[nodiscard]] constexpr const char* name(BarrierAlgorithm algorithm) {
  constexpr const char* names[] = {"alltoall", "flat", "dissemination", "hierarchical"};
  return static_cast<std::uint32_t>(algorithm) < barrier_algorithms ? names[static_cast<std::uint32_t>(algorithm)]
                                                                    : "unknown";
}

/// How the vectors of a collective call get from member to member.
enum class Transfer : std::uint32_t {
  none,      ///< nothing was moved yet, or there was nothing to move
  in_place,  ///< zero-copy: members load from and store to each other's vectors where they lie
  staged,    ///< in and out through the channel's memory
  packets    ///< copied into packets, and out of them
};
inline constexpr std::uint32_t transfers = 4;

/// The name as it appears in messages, in Python and in JSON.
[[nodiscard]] constexpr const char* name(Transfer transfer) {
  constexpr const char* names[] = {"none", "in_place", "staged", "packets"};
  return static_cast<std::uint32_t>(transfer) < transfers ? names[static_cast<std::uint32_t>(transfer)] : "unknown";
}

}  // namespace beeline
