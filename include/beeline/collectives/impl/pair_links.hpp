// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Chunks between each pair of members of a team, in order, by puts and signals: through shared memory on a node, over
/// the network between nodes. Collectives and messages across nodes are built on them, by the host and in kernels.
///
///     sender                                                   receiver
///     box `sent % depth` is free: consumed > sent - depth
///     put head and data, signal arrived = ++sent          ->   looks at arrived, reads the box
///                                                         <-   consumed, with the signal of a chunk the other way
///                                                         <-   or a signal alone, after half a lap without one
///
/// In kernels all of this is out of line (message_chunks.hpp, session_chunks.hpp), so that it takes no registers from
/// calls by loads and stores.

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/device/impl/inline_payload.hpp"
#include "beeline/device/put_get.hpp"

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
/// on another stream. Each thread changes its own count, and both change `acknowledged`.
struct alignas(64) PairCounts {
  std::uint64_t sent, received;
  std::uint64_t acknowledged;  ///< received chunks whose receipt was reported to the peer by a chunk or signal
};

/// The word that a member signals with a chunk: the number of chunks that it has put, and the number of the peer's
/// chunks that it has read. The word has the low 32 bits of both counts; the reader's own counts, which differ by the
/// few chunks in flight, give the high bits.
struct PairProgress {
  std::uint32_t put, consumed;

  [[nodiscard]] BEELINE_HOST_DEVICE static PairProgress of_word(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t word() const { return put | std::uint64_t{consumed} << 32; }
  /// The full count of the chunks put; `received` is the count of those that were read.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t all_put(std::uint64_t received) const {
    return received + (put - static_cast<std::uint32_t>(received));
  }
  /// The full count of the consumed chunks; `sent` is the count of the chunks sent.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t all_consumed(std::uint64_t sent) const {
    return sent - (static_cast<std::uint32_t>(sent) - consumed);
  }
};

/// A member's own words, for all peers.
struct alignas(64) PairState {
  /// The current call: its number, from 1 on, and in the low bits the chained signature of it and all earlier calls.
  std::uint64_t number;
  std::uint64_t packed, count;  ///< the current call's `CallDescription::packed` and number of elements
  std::uint32_t is_busy;
  std::uint32_t stage;  ///< of a kernel's call: 0 before it has begun; then the distance of the member that the round's
                        ///< next chunk is put to
  std::uint64_t done;   ///< of a kernel's call: bytes of each piece in the rounds that have ended

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t calls() const { return number >> signature_bits; }
  BEELINE_HOST_DEVICE void enter(const CallDescription& call) {
    number = (calls() + 1) << signature_bits | call.signature(signature_of(number));
    packed = call.packed(), count = call.count;
  }
};

/// The channel's parts are symmetric: at the same offsets in all members' heaps.
struct PairChannel {
  PaddedWord* arrived;   ///< [members] the PairProgress of each member, written by it
  PaddedWord* consumed;  ///< [members] this member's chunks that each member has read, unless a chunk reports it
  ShownCall* shown;      ///< [members] written by each member
  PairCounts* counts;    ///< [members] this member's counts
  PairState* state;      ///< this member's state
  std::byte* boxes;      ///< [members, depth, box_bytes] chunks that each member puts here
  std::byte* outbox;     ///< [members, depth, box_bytes] chunks that the network carries to each member
  std::uint32_t members, depth;
  std::size_t box_bytes;  ///< a multiple of 64

  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t chunk_bytes() const { return box_bytes - sizeof(ChunkHead); }
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* box(std::byte* all, std::uint32_t peer, std::uint64_t number) const {
    return all + (std::size_t{peer} * depth + number % depth) * box_bytes;
  }
};

class PairLinks;

/// Describes a wait for a chunk from `peer`, or for a free box at `peer`. `poll_until` finds its `look` by this type.
struct PairWait {
  Operation operation;
  std::uint32_t peer;
  std::uint64_t number;       ///< of the chunk
  const PairLinks* compared;  ///< compares calls during the wait of a CPU thread; nullptr: no comparison
};

/// One member's ends of a channel. Used by one thread.
class PairLinks {
 public:
  using Word = SystemAtomic<std::uint64_t>;

  ///   channel  outlives this object
  BEELINE_HOST_DEVICE PairLinks(const Context& ctx, const PairChannel& channel) : ctx_(ctx), channel_(channel) {}

  [[nodiscard]] BEELINE_HOST_DEVICE const Context& context() const { return ctx_; }
  [[nodiscard]] BEELINE_HOST_DEVICE const PairChannel& channel() const { return channel_; }

  /// Whether a chunk may be put to `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE bool has_room(std::uint32_t peer) const {
    const std::uint64_t sent = channel_.counts[peer].sent;
    if (sent - progress_of(peer).all_consumed(sent) < channel_.depth) return true;
    return sent - Word(channel_.consumed[peer].value).load(std::memory_order_acquire) < channel_.depth;
  }
  /// Address for the data of the next chunk to `peer`, if `has_room`: the caller may write the data there directly.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* place_for(std::uint32_t peer) const {
    return next_box(peer) + sizeof(ChunkHead);
  }
  /// Puts a chunk, for which there must be room. `data` may be reused at once, unless it is `place_for(peer)`, as in
  /// kernels: this memory must not change until `depth` further chunks have been put. Returns as `put_signal`.
  [[nodiscard]] BEELINE_HOST_DEVICE Status put(std::uint32_t peer, const ChunkHead& head, const void* data) const;
  /// The head of the next chunk from `peer`, followed by its data; nullptr if it has not arrived.
  [[nodiscard]] BEELINE_HOST_DEVICE const ChunkHead* next(std::uint32_t peer) const {
    const std::uint64_t received = channel_.counts[peer].received;
    if (progress_of(peer).all_put(received) == received) return nullptr;
    return arriving(peer);
  }
  /// The box of the next chunk from `peer`, for threads that know that it has arrived.
  [[nodiscard]] BEELINE_HOST_DEVICE const ChunkHead* arriving(std::uint32_t peer) const {
    return reinterpret_cast<const ChunkHead*>(channel_.box(channel_.boxes, peer, channel_.counts[peer].received));
  }
  /// Acknowledges the chunk of `next` to `peer`, so that its box may be reused.
  [[nodiscard]] BEELINE_HOST_DEVICE Status release(std::uint32_t peer) const;
  /// Called by each poll of a wait for `peer`. If the peer is on another node, this CPU thread does the network's work,
  /// without which the awaited data cannot arrive. In a wait for a member of the same node it does nothing. Returns
  /// whether there was work.
  [[nodiscard]] BEELINE_HOST_DEVICE bool work_for(std::uint32_t peer) const {
    if constexpr (executor == DeviceKind::host)
      return ctx_.access_to(peer).access != PeerAccess::direct && do_wait_work();
    return false;
  }

  /// Waits until there is room for a chunk to `peer`, or until one has arrived from it.
  ///   waiting  a context with the deadline of the wait
  ///   compared  as in PairWait
  /// Return ok; timeout; deadline or aborted, recorded; with `compared` also invalid_argument, recorded.
  [[nodiscard]] BEELINE_HOST_DEVICE Status await_room(const Context& waiting, Operation operation, std::uint32_t peer,
                                                      const PairLinks* compared, Timeout timeout) const {
    return await(waiting, {operation, peer, next_number(peer), compared}, timeout, RoomFor{*this, peer});
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Status await_chunk(const Context& waiting, Operation operation, std::uint32_t peer,
                                                       const PairLinks* compared, Timeout timeout) const {
    return await(waiting, {operation, peer, awaited_number(peer), compared}, timeout, ChunkFrom{*this, peer});
  }

  /// Number of the next chunk from `peer`, and of the next chunk to it, for records.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t awaited_number(std::uint32_t peer) const {
    return channel_.counts[peer].received + 1;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t next_number(std::uint32_t peer) const {
    return channel_.counts[peer].sent + 1;
  }

  /// Publishes this member's call to `peer`. Compares it with the calls that other members publish, and with the calls
  /// of unread chunks, also from members that this member does not wait for. If a call differs, records both calls and
  /// aborts the team. Returns ok or invalid_argument. CPU threads call it.
  [[nodiscard]] Status compare_calls(std::uint32_t peer) const;
  /// Called at the start of a call: refuses unread chunks of earlier calls, since they show that their sender's earlier
  /// call differed from this member's. Returns as `compare_calls`.
  [[nodiscard]] BEELINE_HOST_DEVICE Status check_taken() const;
  /// Compares the call of an arrived chunk with this member's call. Returns as `compare_calls`.
  [[nodiscard]] BEELINE_HOST_DEVICE Status check_call(std::uint32_t peer, const ChunkHead& head) const {
    const PairState& mine = *channel_.state;
    const bool are_same = head.packed == mine.packed && head.count == mine.count;
    if (are_same && head.call == mine.number) return Status::ok;
    const bool is_now = !are_same && head.call >> signature_bits == mine.calls();
    return refuse(peer, is_now ? CallDifference::call : CallDifference::order, head.packed, head.count);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* next_box(std::uint32_t peer) const {
    const std::uint64_t number = channel_.counts[peer].sent;
    const AccessToPeer to = ctx_.access_to(peer);
    return to.access == PeerAccess::direct ? ctx_.translate(channel_.box(channel_.boxes, ctx_.rank, number), to.place)
                                           : channel_.box(channel_.outbox, peer, number);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE PairProgress progress_of(std::uint32_t peer) const {
    return PairProgress::of_word(Word(channel_.arrived[peer].value).load(std::memory_order_acquire));
  }
  // Conditions of waits. No lambdas: nvcc lays out their captures otherwise than g++, and both compile these waits.
  struct RoomFor {
    const PairLinks& links;
    std::uint32_t peer;
    [[nodiscard]] BEELINE_HOST_DEVICE bool operator()() const { return links.has_room(peer); }
  };
  struct ChunkFrom {
    const PairLinks& links;
    std::uint32_t peer;
    [[nodiscard]] BEELINE_HOST_DEVICE bool operator()() const { return links.next(peer) != nullptr; }
  };
  template <class Ready>
  struct Poll {
    const Ready& ready;
    std::uint64_t number;
    [[nodiscard]] BEELINE_HOST_DEVICE bool operator()(std::uint64_t& observed) const {
      observed = number - 1;
      return ready() || (ready.links.work_for(ready.peer) && ready());
    }
  };
  template <class Ready>
  [[nodiscard]] BEELINE_HOST_DEVICE Status await(const Context& waiting, const PairWait& wait, Timeout timeout,
                                                 const Ready& ready) const {
    return poll_until(waiting, wait, timeout, Poll<Ready>{ready, wait.number});
  }
  /// Stores a value in a peer's word after this thread's earlier writes.
  [[nodiscard]] BEELINE_HOST_DEVICE Status store(std::uint64_t& word, std::uint64_t value, std::uint32_t peer) const;
  [[nodiscard]] BEELINE_HOST_DEVICE Status refuse(std::uint32_t peer, CallDifference what, std::uint64_t packed,
                                                  std::uint64_t count) const {
    const CallWords mine{channel_.state->packed, channel_.state->count};
    return refuse_call(ctx_, {what, peer, mine, {packed, count}});
  }

  const Context& ctx_;
  const PairChannel& channel_;
};

// The words and boxes are sound by construction, so commands are posted without the checks of `signal` and
// `put_signal`, whose registers would add to those of all callers.

BEELINE_COLD BEELINE_HOST_DEVICE inline Status PairLinks::store(std::uint64_t& word, std::uint64_t value,
                                                                std::uint32_t peer) const {
  if (const AccessToPeer to = ctx_.access_to(peer); to.access == PeerAccess::direct) {
    store_signal(ctx_.translate(&word, to.place), value, Order::memory);
    return Status::ok;
  }
  const Request request{Operation::signal, Verb::store, sizeof word, 0, 0, peer};
  return command_engine(ctx_, ctx_.routes->queue(0), word_fields(ctx_, request, &word, value)).status;
}

BEELINE_COLD BEELINE_HOST_DEVICE inline Status PairLinks::put(std::uint32_t peer, const ChunkHead& head,
                                                              const void* data) const {
  PairCounts& counts = channel_.counts[peer];
  std::byte* const written = next_box(peer);
  const std::uint64_t received = Word(counts.received).load(std::memory_order_acquire);
  auto* const sent = reinterpret_cast<ChunkHead*>(written);
  *sent = head;
  sent->call = channel_.state->number;
  Word(counts.acknowledged).store(received, std::memory_order_relaxed);
  if constexpr (executor == DeviceKind::host)  // a kernel's group has written to `place_for` already
    if (head.bytes != 0 && data != written + sizeof head) std::memcpy(written + sizeof head, data, head.bytes);
  std::byte* const box = channel_.box(channel_.boxes, ctx_.rank, counts.sent);  // at the same offset on the peer
  std::uint64_t* const arrived = &channel_.arrived[ctx_.rank].value;
  const PairProgress progress{static_cast<std::uint32_t>(++counts.sent), static_cast<std::uint32_t>(received)};
  if (ctx_.access_to(peer).access == PeerAccess::direct) return store(*arrived, progress.word(), peer);
  const SignaledBytes chunk{box, written, sizeof head + head.bytes, arrived, progress.word(), peer};
  return command_engine(ctx_, ctx_.routes->queue(0), put_signal_fields(ctx_, chunk)).status;
}

BEELINE_COLD BEELINE_HOST_DEVICE inline Status PairLinks::release(std::uint32_t peer) const {
  PairCounts& counts = channel_.counts[peer];
  const std::uint64_t received = counts.received + 1;
  Word(counts.received).store(received, std::memory_order_release);
  const Word acknowledged(counts.acknowledged);
  if (received - acknowledged.load(std::memory_order_relaxed) < channel_.depth / 2) return Status::ok;
  acknowledged.store(received, std::memory_order_relaxed);
  return store(channel_.consumed[ctx_.rank].value, received, peer);
}

BEELINE_COLD BEELINE_HOST_DEVICE inline Status PairLinks::check_taken() const {
  const std::uint64_t calls = channel_.state->calls();
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < ctx_.size; ++peer)
    if (const ChunkHead* const chunk = next(peer); chunk != nullptr && chunk->call >> signature_bits < calls)
      return refuse(peer, CallDifference::order, chunk->packed, chunk->count);
  return Status::ok;
}

[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline WaitState look(const Context& ctx, PairWait wait, Timeout timeout,
                                                                     std::uint64_t observed, std::uint64_t start_ns) {
  const std::uint64_t now = machine::clock_ns();
  WaitState state = state_of_wait(ctx, now, timeout, start_ns);
  const std::uint64_t waited = state.waited_ns(now);
  // Kernels do not compare here: in their calls each member puts chunks to all others, and a chunk shows its sender's
  // call.
  if constexpr (executor == DeviceKind::host)
    if (state.status == Status::ok && wait.compared != nullptr && waited >= comparison_after_ns) {
      state.status = wait.compared->compare_calls(wait.peer);
      return state;
    }
  if (state.is_over())
    give_up(ctx, Awaited{wait.operation, wait.peer, wait.number, wait.number}, observed, waited, state.status);
  return state;
}

}  // namespace beeline::detail
