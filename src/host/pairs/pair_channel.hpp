// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Chunks between each pair of members of a team, in order, by puts and signals: through shared memory on a node, over
/// the network between nodes. Collectives and messages across nodes are built on them.
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
  std::uint64_t packed, count;  ///< description of the call, or of the message
  std::uint64_t total;          ///< bytes of the whole transfer
  std::uint64_t bytes;          ///< of this chunk
  std::uint64_t origin;         ///< the member whose data it carries
  std::uint64_t source = 0,
                destination = 0;  ///< offsets of the sender's vectors in its slot, if the chunk publishes them
  std::uint64_t call = 0;         ///< `PairState::number`, which `PairLinks::put` sets; 0: a message's
};
static_assert(sizeof(ChunkHead) == 64);

/// The call that a member is in, published to a member that it waits for.
struct alignas(64) ShownCall {
  std::uint64_t packed, count;
  std::uint64_t number;  ///< from 1 on, in the low bits the call's signature; stored last
};

/// A member's own counts for one peer. One thread sends to the peer, and another may receive from it at the same time,
/// on another stream. Each thread changes its own count, and both change `told`.
struct alignas(64) PairCounts {
  std::uint64_t sent, received;
  std::uint64_t told;  ///< chunks received that were acknowledged to the peer
};

/// The word that a member signals with a chunk: the number of chunks that it has put, and the number of the peer's
/// chunks that it has read. The word has the low 32 bits of both counts; the reader's own counts, which differ by the
/// few chunks in flight, give the high bits.
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
  std::uint64_t packed, count;  ///< the current call's `CallDescription::packed` and number of elements
  std::uint32_t is_busy;

  [[nodiscard]] std::uint64_t calls() const { return number >> signature_bits; }
  void enter(const CallDescription& call) {
    number = (calls() + 1) << signature_bits | call.signature(signature_of(number));
    packed = call.packed(), count = call.count;
  }
};

/// The channel's parts are symmetric: at the same offsets in all members' heaps.
struct PairChannel {
  PaddedWord* arrived;   ///< [members] the PairProgress of each member, written by it
  PaddedWord* consumed;  ///< [members] this member's chunks that each member has read, if no chunk reports it
  ShownCall* shown;      ///< [members] written by each member
  PairCounts* counts;    ///< [members] this member's counts
  PairState* state;      ///< this member's state
  std::byte* boxes;      ///< [members, depth, box_bytes] chunks that each member puts here
  std::byte* outbox;     ///< [members, depth, box_bytes] chunks that the network carries to each member
  std::uint32_t members, depth;
  std::size_t box_bytes;  ///< a multiple of 64

  [[nodiscard]] std::size_t chunk_bytes() const { return box_bytes - sizeof(ChunkHead); }
  [[nodiscard]] std::byte* box(std::byte* all, std::uint32_t peer, std::uint64_t number) const {
    return all + (std::size_t{peer} * depth + number % depth) * box_bytes;
  }
};

/// Sizes of a pair channel.
struct PairSizes {
  std::uint32_t depth;      ///< chunks in flight from one member to another, at least 2
  std::size_t chunk_bytes;  ///< data of a chunk, a multiple of 64
};

/// The memory of a channel, and the addresses of its parts.
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

/// Describes a wait for a chunk from `peer`, or for a free box there. Found by poll_until.
struct PairWait {
  Operation operation;
  std::uint32_t peer;
  std::uint64_t number;       ///< of the chunk
  const PairLinks* compared;  ///< compares calls during the wait; nullptr: no comparison
};

/// One member's ends of a channel. Used by one thread.
class PairLinks {
 public:
  PairLinks(const Context& ctx, const PairChannel& channel) : ctx_(ctx), channel_(channel) {}

  [[nodiscard]] const Context& context() const { return ctx_; }
  [[nodiscard]] const PairChannel& channel() const { return channel_; }

  /// Whether a chunk may be put to `peer`.
  [[nodiscard]] bool has_room(std::uint32_t peer) const;
  /// Address for the data of the next chunk to `peer`, if `has_room`: the caller may write the data there directly.
  [[nodiscard]] std::byte* place_for(std::uint32_t peer) const;
  /// Puts a chunk, for which there must be room. `data` may be reused at once, unless it is `place_for(peer)`: this
  /// memory must not change until `depth` further chunks have been put. Returns as `put_signal`.
  [[nodiscard]] Status put(std::uint32_t peer, const ChunkHead& head, const void* data) const;
  /// The head of the next chunk from `peer`, followed by its data; nullptr if it has not arrived.
  [[nodiscard]] const ChunkHead* next(std::uint32_t peer) const;
  /// Acknowledges the chunk of `next` to `peer`, so that its box may be reused.
  [[nodiscard]] Status release(std::uint32_t peer) const;
  /// Called by each poll of a wait for `peer`. If the peer is on another node, this thread does the network's work,
  /// without which the awaited data cannot arrive. In a wait for a member of the same node it does nothing. Returns
  /// whether there was work.
  [[nodiscard]] bool work_for(std::uint32_t peer) const;

  /// Number of the next chunk from `peer`, and of the next chunk to it, for records.
  [[nodiscard]] std::uint64_t awaited_number(std::uint32_t peer) const { return channel_.counts[peer].received + 1; }
  [[nodiscard]] std::uint64_t next_number(std::uint32_t peer) const { return channel_.counts[peer].sent + 1; }

  /// Publishes this member's call to `peer`. Compares it with the calls that other members publish, and with the calls
  /// of unread chunks, also from members that this member does not wait for. If a call differs, records both calls and
  /// aborts the team. Returns ok or invalid_argument.
  [[nodiscard]] Status compare_calls(std::uint32_t peer) const;
  /// Called at the start of a call: refuses unread chunks of earlier calls, since they show that their sender's earlier
  /// call differed from this member's. Returns as `compare_calls`.
  [[nodiscard]] Status check_taken() const;
  /// Compares the call of an arrived chunk with this member's call. Returns as `compare_calls`.
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
