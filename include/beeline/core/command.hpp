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

#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"

namespace beeline {

/// What an engine does. `put`, `get` and `copy` move rows of bytes, `put_inline` the bytes that the command itself
/// holds, each of them with a signal behind it where their names say so; `trigger` counts for a tag whose armed
/// operations then may start (control/trigger.hpp), the others change one word; those from `add` on are atomic towards
/// the engine's own commands on that word, and towards whatever shares atomics with the engine.
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
  compare_swap,
  put_inline,
  copy,
  trigger,
  put_signal,
  put_inline_signal
};
inline constexpr std::uint8_t command_verbs = 16;

/// One command. The poster checks peer and addresses; `sequence` is stored last, and releases the rest.
struct alignas(64) Command {
  std::uint64_t sequence;  ///< ticket + 1
  Verb verb;
  std::uint8_t width;       ///< bytes of the word, or of `put_inline`; 0: rows
  bool is_signed;           ///< the word, for minimum and maximum
  bool answers;             ///< the poster waits for an answer
  std::uint32_t peer;       ///< world rank; of `copy` nothing
  std::uint64_t remote;     ///< offset in the peer's slot; of `copy` the destination's address; of `trigger` the tag
  std::uint64_t local;      ///< address in the poster's memory; of words, triggers: operand; `put_inline` from here
  std::uint64_t rows;       ///< of a word: what compare_swap expects
  std::uint64_t row_bytes;  ///< of each row
  std::uint64_t remote_stride;  ///< bytes from row to row at the peer; of verbs with a signal its offset in that slot
  std::uint64_t local_stride;   ///< bytes from row to row here; of verbs with a signal its value
};
static_assert(std::is_trivially_copyable_v<Command> && sizeof(Command) == 64);
static_assert(offsetof(Command, sequence) == 0 && offsetof(Command, verb) == 8 && offsetof(Command, width) == 9);
static_assert(offsetof(Command, is_signed) == 10 && offsetof(Command, answers) == 11 && offsetof(Command, peer) == 12);
static_assert(offsetof(Command, remote) == 16 && offsetof(Command, local) == 24 && offsetof(Command, rows) == 32);
static_assert(offsetof(Command, row_bytes) == 40 && offsetof(Command, remote_stride) == 48);
static_assert(offsetof(Command, local_stride) == 56);

/// Bytes that a command itself can hold, from `local` to its end.
inline constexpr std::size_t max_inline_bytes = sizeof(Command) - offsetof(Command, local);
/// The same of one with a signal.
inline constexpr std::size_t max_inline_bytes_with_signal = offsetof(Command, remote_stride) - offsetof(Command, local);

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
  Answer answers[command_ring_depth];  ///< written by the engine, as all below
  PaddedWord taken;                    ///< count of commands: see above
  PaddedWord reusable, completed;      ///< counts of commands, in `DoneCount`
  PaddedWord refused;                  ///< commands that the engine refused: nothing was touched
  PaddedWord asleep;                   ///< 0, or what `wake_engine` needs: the threads of a host engine sleep
};
static_assert(std::is_trivially_copyable_v<CommandRing>);

/// How many commands of a ring are done, and whether any of them was refused: one word, since posters may have to fetch
/// it across a bus.
struct DoneCount {
  static constexpr std::uint64_t refused_bit = std::uint64_t{1} << 63;
  std::uint64_t word;

  [[nodiscard]] BEELINE_HOST_DEVICE static constexpr DoneCount of(std::uint64_t commands, bool has_refused) {
    return {has_refused ? commands | refused_bit : commands};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t commands() const { return word & ~refused_bit; }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr bool has_refused() const { return (word & refused_bit) != 0; }
};

/// What posters share, in memory where they have atomics: one for each ring.
struct CommandTickets {
  alignas(64) std::uint64_t next;           ///< commands posted, or being written
  std::uint64_t taken;                      ///< what a poster has seen the engine take: looked at instead, it is near
  std::uint64_t waits;                      ///< posts that found the ring full
  std::uint64_t completed, reusable;        ///< the same of those words
  std::uint64_t told;                       ///< `completed`, where an engine's stream says it near its posters
  std::uint64_t looking;                    ///< 1: a poster looks at the ring's words, for all that wait
  std::uint64_t freed[command_ring_depth];  ///< commands that a slot has held whose answers, if any, have been read
};

/// Where commands are posted: a ring, and what its posters share.
struct CommandQueue {
  CommandRing* ring;
  CommandTickets* tickets;
  std::uint64_t* wanted = nullptr;  ///< of a device engine: set where it sleeps; nullptr: a host engine serves
};

/// The queues that `CommandQueues` makes, for kernels, by value. Any thread may post to any of them.
struct CommandChannel {
  CommandRing* rings;       ///< [queues], in host memory
  CommandTickets* tickets;  ///< [queues], in memory of the device that posts
  std::uint32_t queues;
  std::uint64_t* wanted = nullptr;  ///< see `CommandQueue`

  [[nodiscard]] BEELINE_HOST_DEVICE CommandQueue queue(std::uint32_t index) const {
    return {&rings[index % queues], &tickets[index % queues], wanted};
  }
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

  [[nodiscard]] BEELINE_HOST_DEVICE CommandQueue queue(std::uint32_t index) const {
    return {&rings[index % command_rings], &tickets[index % command_rings]};
  }
};

namespace detail {

/// Wakes the engine's thread that `asleep` of a ring stands for. By CPU threads, after they have posted.
void wake_engine(std::uint64_t asleep) noexcept;

}  // namespace detail

}  // namespace beeline
