// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The commands that ranks post to engines, and the rings that hold them: the layout that kernels, CPU threads and
/// engines share (docs/design.md, Routes).
///
/// A ring is in host memory. GPUs and CPUs reach this memory but share no atomics on it, so each word of a ring has
/// only one writer.
///
///   poster                                     engine, in the order of the ring
///     waits until a slot is free;  its ticket = tickets.next++
///     commands[ticket % depth], sequence last ->  copies it;  taken = ticket + 1
///                                                 carries it out
///     reads the answer, frees the slot <- answers[ticket % depth], sequence last: if `answers` is set
///     flush                                  <-   reusable  = commands whose sources may be reused
///     quiet                                  <- completed = commands that are complete at their targets

#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"

namespace beeline {

/// What an engine does for a command; device/impl/verbs.hpp has a row for each verb. `put`, `get` and `copy` move rows
/// of bytes; `put_inline` moves bytes that the command itself holds. A name with `signal` adds a signal after the data.
/// `trigger` increments the count of a tag, whose armed operations may then start (control/trigger.hpp). `batch` names
/// a list of operations (`BatchEntry`). `store` and the verbs from `add` to `compare_swap` change one word. `add` to
/// `compare_swap` are atomic towards the engine's other commands on that word, and towards all devices that share
/// atomics with the engine.
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
  put_inline_signal,
  batch
};

/// What the poster of a put knows of its source (`Command::is_signed`).
enum class SourceKind : std::uint8_t {
  unknown,  ///< the engine finds out whether its device reads the memory: for memory that is not symmetric by a call of
            ///< the system or of CUDA
  readable  ///< the engine's device reads the memory until `flush`: on a host rank it is mapped, on a GPU rank CUDA has
            ///< allocated or pinned it. The engine does not ask, and the process may fault where this is wrong
};

/// One command. The poster checks peer and addresses, and stores `sequence` last, with release order.
struct alignas(64) Command {
  std::uint64_t sequence;  ///< ticket + 1
  Verb verb;
  std::uint8_t width;       ///< bytes of the word, or of `put_inline`; 0: rows
  bool is_signed;           ///< whether minimum and maximum take the word as signed; of a put: see `SourceKind`
  bool answers;             ///< the poster waits for an answer
  std::uint32_t peer;       ///< world rank; unused by `copy`
  std::uint64_t remote;     ///< offset in the peer's slot; for `copy` the destination's address; for `trigger` the tag
  std::uint64_t local;      ///< the poster's address; for words and triggers the operand; `put_inline`: data begin here
  std::uint64_t rows;       ///< number of rows; for a word the value that compare_swap expects
  std::uint64_t row_bytes;  ///< bytes of each row
  std::uint64_t remote_stride;  ///< bytes from the start of a row to the start of the next at the peer; for verbs with
                                ///< a signal the signal's offset in the peer's slot
  std::uint64_t local_stride;   ///< as `remote_stride`, at the poster; for verbs with a signal the signal's value
};
static_assert(std::is_trivially_copyable_v<Command> && sizeof(Command) == 64);
static_assert(offsetof(Command, sequence) == 0 && offsetof(Command, verb) == 8 && offsetof(Command, width) == 9);
static_assert(offsetof(Command, is_signed) == 10 && offsetof(Command, answers) == 11 && offsetof(Command, peer) == 12);
static_assert(offsetof(Command, remote) == 16 && offsetof(Command, local) == 24 && offsetof(Command, rows) == 32);
static_assert(offsetof(Command, row_bytes) == 40 && offsetof(Command, remote_stride) == 48);
static_assert(offsetof(Command, local_stride) == 56);

/// Bytes of data that fit into a command, from `local` to its end.
inline constexpr std::size_t max_inline_bytes = sizeof(Command) - offsetof(Command, local);
/// Bytes of data that fit into a command with a signal.
inline constexpr std::size_t max_inline_bytes_with_signal = offsetof(Command, remote_stride) - offsetof(Command, local);

/// One operation of a `batch`: the fields of a command to the batch's peer, in three words.
struct BatchEntry {
  static constexpr unsigned remote_bits = 48;
  std::uint64_t head;   ///< `Command::remote`; above `remote_bits` the verb, above that `Command::width`
  std::uint64_t local;  ///< as `Command::local`
  std::uint64_t bytes;  ///< put: bytes of its only row; put_inline: more of its data

  [[nodiscard]] BEELINE_HOST_DEVICE static constexpr BatchEntry of(Verb verb, std::size_t width, std::uint64_t remote,
                                                                   std::uint64_t local, std::uint64_t bytes) {
    const std::uint64_t kind = static_cast<std::uint64_t>(verb) | std::uint64_t{width} << 8;
    return {remote | kind << remote_bits, local, bytes};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr Verb verb() const {
    return static_cast<Verb>(head >> remote_bits & 0xff);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint8_t width() const {
    return static_cast<std::uint8_t>(head >> (remote_bits + 8));
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t remote() const {
    return head & ((std::uint64_t{1} << remote_bits) - 1);
  }
};
static_assert(std::is_trivially_copyable_v<BatchEntry> && sizeof(BatchEntry) == 24);

/// Most entries of one `batch`.
inline constexpr std::uint32_t most_batch_entries = 256;
/// Longest put that is an entry.
inline constexpr std::size_t most_batched_bytes = 4096;
/// Bytes of data that fit into an entry.
inline constexpr std::size_t max_inline_bytes_in_batch = sizeof(BatchEntry) - offsetof(BatchEntry, local);

/// An engine's answer to a command: the old value of a word, or, for a `get`, only the fact that the bytes have
/// arrived.
struct Answer {
  std::uint64_t value;
  std::uint64_t sequence;  ///< ticket + 1, released last
};
static_assert(std::is_trivially_copyable_v<Answer> && sizeof(Answer) == 16);

/// Largest number of commands in flight in a ring; a power of two.
inline constexpr std::uint32_t command_ring_depth = 256;
/// Number of rings of a rank's kernels, and of rings of its CPU threads: queue q posts to ring q % command_rings.
inline constexpr std::uint32_t command_rings = 4;

/// One ring. Operations of one queue towards one peer are done in the order of the ring.
struct CommandRing {
  Command commands[command_ring_depth];
  Answer answers[command_ring_depth];  ///< written by the engine, like all members below
  PaddedWord taken;                    ///< count of commands that the engine has copied: see the top of this file
  PaddedWord reusable, completed;      ///< counts of commands, in `DoneCount`
  PaddedWord refused;                  ///< count of commands that the engine has refused, without touching any memory
  PaddedWord asleep;                   ///< 0, or, if the threads of a host engine sleep, the argument of `wake_engine`
};
static_assert(std::is_trivially_copyable_v<CommandRing>);

/// The number of commands of a ring that are done, and whether any of them was refused. Both are in one word, since
/// posters may have to read the word across a bus.
struct DoneCount {
  static constexpr std::uint64_t refused_bit = std::uint64_t{1} << 63;
  std::uint64_t word;

  [[nodiscard]] BEELINE_HOST_DEVICE static constexpr DoneCount of(std::uint64_t commands, bool has_refused) {
    return {has_refused ? commands | refused_bit : commands};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t commands() const { return word & ~refused_bit; }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr bool has_refused() const { return (word & refused_bit) != 0; }
};

/// The state that a ring's posters share, in memory on which they have atomics.
struct CommandTickets {
  alignas(64) std::uint64_t next;  ///< next ticket: commands posted or being written
  std::uint64_t taken;  ///< a copy, in local memory, of the last value of `CommandRing::taken` that any poster has read
  std::uint64_t waits;  ///< number of posts that found the ring full
  std::uint64_t completed, reusable;        ///< copies of `CommandRing::completed` and `reusable`
  std::uint64_t completed_mirror;           ///< `completed`, as an engine's stream writes it to the posters' own memory
  std::uint64_t looking;                    ///< 1: a poster reads the ring's words for all posters that wait
  std::uint64_t freed[command_ring_depth];  ///< for each cell: number of commands that it has held; a command counts
                                            ///< once its answer, if any, has been read
};

/// Where commands are posted: a ring, and the state that its posters share.
struct CommandQueue {
  CommandRing* ring;
  CommandTickets* tickets;
  std::uint64_t* wanted = nullptr;  ///< set to wake a device engine that sleeps; nullptr for a host engine
};

/// The queues of a `CommandQueues` object, which kernels take by value. Any thread may post to any queue.
struct CommandQueuesView {
  CommandRing* rings;       ///< [queues], in host memory
  CommandTickets* tickets;  ///< [queues], in memory of the device that posts
  std::uint32_t queues;
  std::uint64_t* wanted = nullptr;  ///< see `CommandQueue`

  [[nodiscard]] BEELINE_HOST_DEVICE CommandQueue queue(std::uint32_t index) const {
    return {&rings[index % queues], &tickets[index % queues], wanted};
  }
};

/// How a rank's kernels and CPU threads reach a member of a team.
enum class PeerAccess : std::uint32_t {
  direct,  ///< reached by loads and stores
  engine,  ///< reached by commands to an engine
  refused  ///< not reached; errors give the reason
};

/// How one member is reached.
struct AccessToPeer {
  PeerAccess access;
  std::uint32_t place;  ///< if direct: the member's place in `Context`, which has places for the members of the own
                        ///< node
};

/// How a member of a team reaches another member.
struct MemberRoute {
  AccessToPeer to;
  std::uint32_t world_rank;
  DeviceKind kind;
};

/// The routes of a context whose team has members that loads and stores do not reach; in host memory.
struct RouteTable {
  CommandRing* rings;          ///< [command_rings]
  CommandTickets* tickets;     ///< [command_rings]
  const MemberRoute* members;  ///< [size of the team]

  [[nodiscard]] BEELINE_HOST_DEVICE CommandQueue queue(std::uint32_t index) const {
    return {&rings[index % command_rings], &tickets[index % command_rings]};
  }
};

namespace detail {

/// Wakes the engine's thread that has written `asleep` of a ring. CPU threads call it after they have posted.
void wake_engine(std::uint64_t asleep) noexcept;

}  // namespace detail

}  // namespace beeline
