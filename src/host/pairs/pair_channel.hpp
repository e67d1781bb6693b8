// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Chunks between each pair of members of a team, in order, by puts and signals: through memory inside a node, over the
/// network between nodes. Collectives and messages of host ranks on several nodes are built on them.
///
///     sender                                                   receiver
///     box `sent % depth` is free: consumed > sent - depth
///     put head and data, signal arrived = ++sent          ->   looks at arrived, reads the box
///                                                         <-   consumed, with the signal of a chunk the other way
///                                                         <-   or a signal, where none has gone for half a lap

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/device/context.hpp"
#include "beeline/device/wait.hpp"
#include "beeline/host/team.hpp"

namespace beeline::detail {

/// Precedes the data of a chunk.
struct alignas(64) ChunkHead {
  std::uint64_t packed, count;  ///< of the call, or of the message
  std::uint64_t total;          ///< bytes of the whole transfer
  std::uint64_t bytes;          ///< of this chunk
  std::uint64_t origin;         ///< the member whose data it carries
  std::uint64_t source = 0,
                destination = 0;  ///< of a chunk that tells where its sender has vectors: its slot's offsets
  std::uint64_t call = 0;         ///< `PairState::number`, which `PairLinks::put` sets; 0: a message's
};
static_assert(sizeof(ChunkHead) == 64);

/// The call that a member is in, shown to a member that it waits for.
struct alignas(64) ShownCall {
  std::uint64_t packed, count;
  std::uint64_t number;  ///< from 1 on, and behind it the call's signature; stored last
};

/// A member's own counts of one peer. One thread sends to it, and another may receive from it at the same time, on
/// another stream: each changes its own count, and both change `told`.
struct alignas(64) PairCounts {
  std::uint64_t sent, received;
  std::uint64_t told;  ///< chunks received that the peer knows to be consumed
};

/// What a member signals with a chunk, in one word: how many chunks it has put, and how many of the other's it has
/// read. Of both counts the word has 32 bits; who reads it knows them up to the few chunks that are under way.
struct PairProgress {
  std::uint32_t put, consumed;

  [[nodiscard]] static PairProgress of_word(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  [[nodiscard]] std::uint64_t word() const { return put | std::uint64_t{consumed} << 32; }
  /// The chunks put, of which `received` have been read.
  [[nodiscard]] std::uint64_t all_put(std::uint64_t received) const {
    return received + (put - static_cast<std::uint32_t>(received));
  }
  /// The chunks consumed of `sent`.
  [[nodiscard]] std::uint64_t all_consumed(std::uint64_t sent) const {
    return sent - (static_cast<std::uint32_t>(sent) - consumed);
  }
};

/// A member's own words, for all peers.
struct alignas(64) PairState {
  /// The current call: its number, from 1 on, and in the low bits the chained signature of it and all earlier calls.
  std::uint64_t number;
  std::uint64_t packed, count;  ///< of the current call: `CallDescription::packed`, and its elements
  std::uint32_t is_busy;

  [[nodiscard]] std::uint64_t calls() const { return number >> signature_bits; }
  void enter(const CallDescription& call) {
    number = (calls() + 1) << signature_bits | call.signature(signature_of(number));
    packed = call.packed(), count = call.count;
  }
};

/// Its parts lie at the same places of all members' heaps.
struct PairChannel {
  PaddedWord* arrived;   ///< [members] the PairProgress of each, written by it
  PaddedWord* consumed;  ///< [members] chunks of this member's that each has read, where no chunk says so
  ShownCall* shown;      ///< [members] by each
  PairCounts* counts;    ///< [members] this member's own
  PairState* state;      ///< this member's own
  std::byte* boxes;      ///< [members, depth, box_bytes] what each puts here
  std::byte* outbox;     ///< [members, depth, box_bytes] what the network takes to each
  std::uint32_t members, depth;
  std::size_t box_bytes;  ///< a multiple of 64

  [[nodiscard]] std::size_t chunk_bytes() const { return box_bytes - sizeof(ChunkHead); }
  [[nodiscard]] std::byte* box(std::byte* all, std::uint32_t peer, std::uint64_t number) const {
    return all + (std::size_t{peer} * depth + number % depth) * box_bytes;
  }
};

/// Sizes of a pair channel.
struct PairSizes {
  std::uint32_t depth;      ///< chunks under way from one member to another, at least 2
  std::size_t chunk_bytes;  ///< data of one, a multiple of 64
};

/// The memory of a channel, and where its parts lie.
class PairMemory {
 public:
  /// Collective.
  PairMemory(Team& team, const PairSizes& sizes);
  [[nodiscard]] const PairChannel& channel() const { return channel_; }

 private:
  SymmetricArray<std::byte> memory_;
  PairChannel channel_;
};

class PairLinks;

/// What a thread waits for: a chunk of `peer`, or a free box there. Found by poll_until.
struct PairWait {
  Operation operation;
  std::uint32_t peer;
  std::uint64_t number;       ///< of the chunk
  const PairLinks* compared;  ///< compares calls meanwhile; nullptr: there are none
};

/// One member's ends of a channel, of its calls of one kind: one thread uses it.
class PairLinks {
 public:
  PairLinks(const Context& ctx, const PairChannel& channel) : ctx_(ctx), channel_(channel) {}

  [[nodiscard]] const Context& context() const { return ctx_; }
  [[nodiscard]] const PairChannel& channel() const { return channel_; }

  /// Whether a chunk may be put.
  [[nodiscard]] bool has_room(std::uint32_t peer) const;
  /// Address of the data of the next chunk for `peer`, if `has_room`: the caller may write them there in place.
  [[nodiscard]] std::byte* place_for(std::uint32_t peer) const;
  /// Puts one, for which there is room. `data` may be reused at once, unless it is `place_for(peer)`: that stays as it
  /// is until `depth` further chunks have been put. Returns as `put_signal`.
  [[nodiscard]] Status put(std::uint32_t peer, const ChunkHead& head, const void* data) const;
  /// The head of the next chunk from `peer`, followed by its data; nullptr if it has not arrived.
  [[nodiscard]] const ChunkHead* next(std::uint32_t peer) const;
  /// Tells `peer` that the chunk of `next` was read, so that its cell may be reused.
  [[nodiscard]] Status release(std::uint32_t peer) const;
  /// For each poll of a wait for `peer`: if it is on another node, this thread does the network's work, since what it
  /// waits for can come by nothing else. A wait for a member of the node leaves most polls to that member. Returns
  /// whether there was work.
  [[nodiscard]] bool work_for(std::uint32_t peer) const;

  /// The next number of `peer`'s chunks, and of those for it, for records.
  [[nodiscard]] std::uint64_t awaited_number(std::uint32_t peer) const { return channel_.counts[peer].received + 1; }
  [[nodiscard]] std::uint64_t next_number(std::uint32_t peer) const { return channel_.counts[peer].sent + 1; }

  /// Shows `peer` the call that this member is in, and compares the calls that other members show, and those of chunks
  /// that nobody has read: of members that this one does not wait for. A different call is recorded with this one, and
  /// the team aborted. Returns ok or invalid_argument.
  [[nodiscard]] Status compare_calls(std::uint32_t peer) const;
  /// At the start of a call: refuses chunks of earlier calls, which this member would have taken if its sender had made
  /// the same call. Returns as `compare_calls`.
  [[nodiscard]] Status check_taken() const;
  /// Compares the call of a chunk that has come with this member's. Returns as `compare_calls`.
  [[nodiscard]] Status check_call(std::uint32_t peer, const ChunkHead& head) const;

 private:
  [[nodiscard]] std::byte* next_box(std::uint32_t peer) const;
  [[nodiscard]] PairProgress progress_of(std::uint32_t peer) const;
  [[nodiscard]] Status refuse(std::uint32_t peer, CallDifference what, std::uint64_t packed, std::uint64_t count) const;

  const Context& ctx_;
  PairChannel channel_;
};

[[nodiscard]] WaitState look(const Context& ctx, PairWait wait, Timeout timeout, std::uint64_t observed,
                             std::uint64_t start_ns);

}  // namespace beeline::detail
