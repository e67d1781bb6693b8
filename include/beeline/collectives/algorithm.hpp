// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The algorithms of collectives by name, those of barriers, and how vectors get from member to member.

#include <cstdint>

#include "beeline/core/macros.hpp"

namespace beeline {

/// How a collective goes about it. Not every operation has every algorithm; `Collectives` refuses what does not exist.
enum class Algorithm : std::uint32_t {
  automatic,
  packets_one_shot,     ///< all to all in packets, everyone reduces everything: the lowest latency
  packets_two_shot,     ///< packets to the owner of each part, who reduces it, and sends it to all
  packets128_one_shot,  ///< as packets_one_shot, in packets of 128 bytes: between GPUs whose lines arrive whole
  packets128_two_shot,  ///< as packets_two_shot, in packets of 128 bytes
  two_shot,             ///< each reads its part from all, reduces it, and writes it to all; in place, without copies
  read,                 ///< everyone reads everything (000, 6.8.1)
  gather,               ///< all write to the root, which reduces (000, 6.8.2)
  gather_cast,          ///< the same, and the root writes the result to all (000, 6.8.2)
  allgather,            ///< all write to all, everyone reduces everything (000, 6.8.2)
  alltoall_gather,      ///< parts to their owners, who reduce them and write them to the root (000, 6.8.3)
  alltoall_allgather,   ///< parts to their owners, who reduce them and write them to all (000, 6.8.3)
  tree,                 ///< up a binomial tree, and down again (000, 6.8.3)
  packets,              ///< data and flags in one store
  packets128,           ///< the same, 120 bytes of data beside one flag
  peer,                 ///< loads and stores of the calling threads
  bulk,                 ///< the copy unit of the multiprocessor (TMA)
  copy_engine           ///< copies by the device's engines, reductions by a kernel
};
inline constexpr std::uint32_t algorithms = 18;

/// Whether it sends lines, so is there only where `no_packets128_reason` (host/packets.hpp) finds none.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_packets128(Algorithm algorithm) {
  return algorithm == Algorithm::packets128_one_shot || algorithm == Algorithm::packets128_two_shot ||
         algorithm == Algorithm::packets128;
}

/// The algorithm's name as it appears in messages, in Python and in JSON.
[[nodiscard]] constexpr const char* name(Algorithm algorithm) {
  constexpr const char* names[] = {"automatic",
                                   "packets_one_shot",
                                   "packets_two_shot",
                                   "packets128_one_shot",
                                   "packets128_two_shot",
                                   "two_shot",
                                   "read",
                                   "gather",
                                   "gather_cast",
                                   "allgather",
                                   "alltoall_gather",
                                   "alltoall_allgather",
                                   "tree",
                                   "packets",
                                   "packets128",
                                   "peer",
                                   "bulk",
                                   "copy_engine"};
  return static_cast<std::uint32_t>(algorithm) < algorithms ? names[static_cast<std::uint32_t>(algorithm)] : "unknown";
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
