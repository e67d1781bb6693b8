// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What ranks post to engines, and where: the layout that kernels, CPU threads and engines share (docs/design.md,
/// Routes).
///
/// A ring lies in host memory, which GPUs and CPUs see but have no common atomics in: each of its words has one writer.
///
///   poster                                     engine, in the order of the ring
///     waits until a slot is free;  its ticket = tickets.next++
///     commands[ticket % depth], sequence last ->  copies it;  taken = ticket + 1
///                                                 does it
///     reads it, frees the slot               <-   answers[ticket % depth], sequence last: where `answers` says so
///     flush                                  <-   reusable  = commands whose sources may be reused
///     quiet                                  <-   completed = commands that are in place at their targets

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"

namespace beeline {

/// What an engine does. `put` and `get` move rows of bytes, the others change one word; those from `add` on are atomic
/// towards the engine's own commands on that word, and towards whatever shares atomics with the engine.
enum class Verb : std::uint8_t {
  put,
  get,
  store,
  add,
  bit_and,
  bit_or,
  bit_xor,
  minimum,
  maximum,
  exchange,
  compare_swap
};

/// One command. The poster checks peer and addresses; `sequence` is stored last, and releases the rest.
struct alignas(64) Command {
  std::uint64_t sequence;  ///< ticket + 1
  Verb verb;
  std::uint8_t width;           ///< bytes of the word; 0: rows
  bool is_signed;               ///< the word, for minimum and maximum
  bool answers;                 ///< the poster waits for an answer
  std::uint32_t peer;           ///< world rank
  std::uint64_t remote;         ///< offset in the peer's slot
  std::uint64_t local;          ///< address in the poster's memory; of a word: the operand
  std::uint64_t rows;           ///< of a word: what compare_swap expects
  std::uint64_t row_bytes;      ///< of each row
  std::uint64_t remote_stride;  ///< bytes from row to row at the peer
  std::uint64_t local_stride;   ///< bytes from row to row here
};
static_assert(std::is_trivially_copyable_v<Command> && sizeof(Command) == 64);
static_assert(offsetof(Command, verb) == 8 && offsetof(Command, peer) == 12 && offsetof(Command, local) == 24);

/// What a command gives back: the old value of a word; of a `get` only that the bytes have come.
struct Answer {
  std::uint64_t value;
  std::uint64_t sequence;  ///< ticket + 1, released last
};
static_assert(std::is_trivially_copyable_v<Answer> && sizeof(Answer) == 16);

/// Commands under way in a ring at most; a power of two.
inline constexpr std::uint32_t command_ring_depth = 256;
/// Rings of a rank's kernels, and of its CPU threads: queue q posts to ring q % command_rings.
inline constexpr std::uint32_t command_rings = 4;

/// One ring. Between operations of one queue towards one peer, the ring's order is kept.
struct CommandRing {
  Command commands[command_ring_depth];
  Answer answers[command_ring_depth];     ///< written by the engine, as all below
  PaddedWord taken, reusable, completed;  ///< counts of commands: see above
};
static_assert(std::is_trivially_copyable_v<CommandRing>);

/// What posters share, in memory where they have atomics: one for each ring.
struct CommandTickets {
  alignas(64) std::uint64_t next;           ///< commands posted, or being written
  std::uint64_t freed[command_ring_depth];  ///< commands that a slot has held whose answers, if any, have been read
};

/// How a rank's kernels and CPU threads reach a member of a team.
enum class Way : std::uint32_t {
  direct,  ///< by loads and stores
  engine,  ///< by commands
  refused  ///< not at all, for a reason that errors give
};

/// The way to one member.
struct WayToPeer {
  Way way;
  std::uint32_t place;  ///< direct: the member's place in `Context`, which holds the members of the own node
};

/// A member of a team, as another of them reaches it.
struct MemberRoute {
  WayToPeer way;
  std::uint32_t world_rank;
  DeviceKind kind;
};

/// Behind a context whose team has members that loads and stores do not reach; in host memory.
struct RouteTable {
  CommandRing* rings;          ///< [command_rings]
  CommandTickets* tickets;     ///< [command_rings]
  const MemberRoute* members;  ///< [size of the team]
};

}  // namespace beeline
