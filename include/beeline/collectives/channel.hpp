// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What kernels need for the collectives of a team, made by `Collectives` and passed by value.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"
#include "beeline/device/impl/machine.hpp"

namespace beeline {

/// Where one session of one rank stands. Kept from call to call, and over a time-out.
struct alignas(128) SessionState {
  std::uint64_t round;         ///< the last that this rank has entered, and its call's signature: see session.hpp
  std::uint64_t offset;        ///< what an interrupted call has done already
  std::uint64_t vectors;       ///< rounds of vectors that this rank has entered
  std::uint32_t entered;       ///< whether `round` is still under way
  std::uint32_t went_one_way;  ///< whether some member may not have read yet what came in the last round
  std::uint32_t stage;         ///< how far an interrupted call has come
  std::uint32_t is_open;       ///< whether a session has it
  std::uint32_t transfer;      ///< how the last call's vectors travelled (Transfer), where its kernel decided it
  std::uint32_t tickets;       ///< of the first session: pieces that warps of a kernel have drawn, 0 between calls
  std::uint32_t ended;         ///< of the first session: blocks of that kernel that will draw no more
  /// This rank's current call and its previous one, read by the other members: see impl/session_wait.hpp.
  machine::PacketPair calls[2][2];
};
static_assert(sizeof(SessionState) == 128);

/// A channel for the collectives of a team. It has *sessions*: a block of every member's grid meets the blocks of the
/// same number on a session of their own, so that a grid needs no barrier over its blocks.
///
/// On one session the members make the same calls in the same order. Calls that go on at the same time, from several
/// streams or kernels, take channels of their own.
struct CollectiveChannel {
  SessionState* states;  ///< [sessions]
  PaddedWord* arrived;   ///< [sessions, max_ranks] last barrier round that each member has reached, written by it
  PaddedWord* finished;  ///< [sessions, max_ranks] last round whose packets each has read, where one rank sends
  machine::PacketPair* packets;  ///< [sessions, 2, members, area_pairs] by the parity of the round, and the sender
  machine::PacketPair* lines;    ///< [sessions, 2, members, area_lines, line_threads] the same for packets of 128 bytes
  std::byte* vectors;  ///< [sessions, 2, members, vector_bytes] by the parity of the round of vectors, and the sender
  std::byte* staging;  ///< [sessions, 2, staging_bytes] for vectors that are not symmetric
  std::uint32_t sessions;
  std::uint32_t area_pairs;     ///< 8 bytes of payload each, an even number
  std::uint32_t area_lines;     ///< 120 bytes of payload each, an even number; 0: not between these ranks
  std::uint64_t vector_bytes;   ///< a multiple of 256, with the flag's 8; 0 but between CPUs
  std::uint64_t staging_bytes;  ///< a multiple of 256
};
static_assert(std::is_trivially_copyable_v<CollectiveChannel>);

}  // namespace beeline
