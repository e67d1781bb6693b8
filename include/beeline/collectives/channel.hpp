// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The channel that kernels need for the collectives of a team. `Collectives` makes it; kernels take it by value.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"
#include "beeline/device/impl/machine.hpp"

namespace beeline {

namespace detail {
struct PairChannel;
}  // namespace detail

/// Number of a session's last calls whose descriptions a member publishes: see impl/session_wait.hpp.
inline constexpr std::uint32_t shown_calls = 4;

/// The state of one session of one rank. Kept between calls, and after a time-out.
struct alignas(128) SessionState {
  std::uint64_t round;         ///< number of the last round that this rank has entered, and the signature of its call:
                               ///< see session.hpp
  std::uint64_t offset;        ///< progress of an interrupted call, in the algorithm's units
  std::uint64_t vectors;       ///< number of vector rounds that this rank has entered
  std::uint32_t entered;       ///< whether `round` is still in progress
  std::uint32_t went_one_way;  ///< whether some member may not yet have read the data of the last round
  std::uint32_t stage;         ///< stage of an interrupted call
  std::uint32_t is_open;       ///< whether a `Session` object uses this state
  std::uint32_t transfer;      ///< how the last call's vectors travelled (Transfer), if its kernel decided this
  std::uint32_t tickets;       ///< first session only: number of pieces that warps of a kernel have taken; 0 between
                               ///< calls
  std::uint32_t reached;       ///< first session only: number of the last call that waited before its grid started
  std::uint32_t signatures;    ///< signature of the last round that this rank has left, and in the high bits that of
                               ///< the round before
  /// Descriptions of this rank's last calls, which other members read: see impl/session_wait.hpp.
  machine::PacketPair calls[shown_calls][2];
};
static_assert(sizeof(SessionState) == 256);

/// A channel for the collectives of a team. The channel has *sessions*. The blocks with the same number in the grids of
/// all members communicate on one session, so that a grid needs no barrier over its blocks.
///
/// On one session all members make the same calls in the same order. Concurrent calls, from several streams or kernels,
/// need one channel each.
struct CollectiveChannel {
  SessionState* states;  ///< [sessions]
  PaddedWord* arrived;   ///< [sessions, max_node_ranks] last barrier round of each member, written by that member
  PaddedWord* finished;  ///< [sessions, max_node_ranks] last round with one sender whose packets each member has read
  machine::PacketPair* packets;  ///< [sessions, 2, members, area_pairs] by parity of the round and by sender
  machine::PacketPair* lines;    ///< [sessions, 2, members, area_lines, line_threads] as `packets`, for packets of 128
                                 ///< bytes
  std::byte* vectors;            ///< [sessions, 2, members, vector_bytes] by parity of the vector round and by sender
  std::byte* staging;            ///< [sessions, 2, staging_bytes] for vectors that are not symmetric
  std::uint32_t sessions;
  std::uint32_t area_pairs;     ///< pairs of packets in an area, with 8 bytes of payload each; even
  std::uint32_t area_lines;     ///< lines in an area, with 120 bytes of payload each; even; 0 if these ranks cannot
                                ///< send lines
  std::uint64_t vector_bytes;   ///< bytes of a vector and its flag (8 bytes), a multiple of 256; 0 unless all members
                                ///< are host ranks
  std::uint64_t staging_bytes;  ///< a multiple of 256
  /// [sessions] in a team with members on several nodes, instead of all memory above but the states; otherwise nullptr
  const detail::PairChannel* across;
};
static_assert(std::is_trivially_copyable_v<CollectiveChannel>);

}  // namespace beeline
