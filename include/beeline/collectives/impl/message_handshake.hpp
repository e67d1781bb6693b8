// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages by rendezvous: first the sender sends the header, with the offset of the source in its slot. The receiver
/// answers with the offset of the destination in its own slot. If the destination is in the receiver's heap, the sender
/// stores the data there. If not, but the source is in the sender's heap, the receiver reads the data. Otherwise the
/// data go in chunks through the receiver's staging memory. Source: seed 000, 2.4.5 (eager and rendezvous protocol);
/// MPI 4.0, 3.5.

#include <type_traits>

#include "beeline/collectives/impl/message_link.hpp"

namespace beeline::detail {

/// Makes writes that precede the store of a pair visible to this thread, which has seen the pair. A load is faster than
/// a fence.
BEELINE_HOST_DEVICE inline void acquire_pair(const machine::PacketPair* seen) {
  static_cast<void>(SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(seen->low)).load(std::memory_order_acquire));
}

/// One session's end of a message by rendezvous: the sender (const bytes) or the receiver.
template <class Group, class Byte>
class MessageHandshake {
 public:
  BEELINE_HOST_DEVICE MessageHandshake(const Group& group, const MessageLink& link, const MessageSlice<Byte>& slice,
                                       Timeout timeout)
      : group_(group), link_(link), slice_(slice), timeout_(timeout), state_(link.own_state()), progress_(kept()),
        place_(link.place_of(slice.data)) {
    group_.sync();  // every thread has read the progress before the first changes it
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status run() {
    const Status status = move();
    if (status == Status::ok) {
      if constexpr (!sends) ++progress_.sequence;
      progress_.is_in_progress = 0, progress_.done = 0;
    }
    if (group_.thread_rank() == 0) kept() = progress_;
    return status;
  }

 private:
  static constexpr bool sends = std::is_const_v<Byte>;

  [[nodiscard]] BEELINE_HOST_DEVICE MessageProgress& kept() const { return sends ? state_->out : state_->in; }

  [[nodiscard]] BEELINE_HOST_DEVICE Status move() {
    std::uint64_t place = no_place;  // offset at the peer
    if (const Status status = agree_on_places(place); status != Status::ok) return status;
    if (slice_.bytes == 0) return Status::ok;  // a slice may be empty if the message has fewer grains than slices
    const std::uint64_t target = sends ? place : place_, source = sends ? place_ : place;
    const bool is_staged = target == no_place && source == no_place;
    // The sender moves the data if it can: stores need no round trip, reads do.
    if (is_staged || sends == (target != no_place)) return move_pieces(is_staged ? nullptr : link_.address_of(place));
    const Status status = await_chunk(0);
    if (status == Status::ok) ++progress_.chunks;
    return status;
  }

  /// Exchanges offsets with the peer.
  [[nodiscard]] BEELINE_HOST_DEVICE Status agree_on_places(std::uint64_t& place) {
    if constexpr (sends) {
      if (progress_.is_in_progress == 0)
        if (const Status status = announce(); status != Status::ok) return status;
      return await_answer(place);
    } else {
      if (progress_.is_in_progress == 0) answer();
      return await_header(place);
    }
  }

  /// Sends the header and the offset of the source.
  [[nodiscard]] BEELINE_HOST_DEVICE Status announce() {
    const std::uint32_t sequence = progress_.sequence + 1;
    if (progress_.sequence - progress_.credit == link_.channel.depth)
      if (const Status status = renew_credit(group_, link_, sequence, progress_.credit, timeout_); status != Status::ok)
        return status;
    machine::PacketPair* slot = link_.slot(link_.out_ring(), sequence);
    group_.sync();  // the rest of the group has written its part of the source
    if (group_.thread_rank() == 0) {
      machine::fence_acquire_release();
      machine::store_packets(slot, packets_of(slice_.header, sequence));
      machine::store_packets(slot + 1, packets_of(place_, sequence));
    }
    const std::uint32_t pairs = link_.rewrites_slot(sequence) ? link_.channel.slot_pairs : 0;
    BEELINE_NO_UNROLL
    for (std::uint32_t i = 2 + group_.thread_rank(); i < pairs; i += group_.size())
      machine::store_packets(slot + i, packets_of(0, sequence));
    progress_.sequence = sequence, ++progress_.handshakes, progress_.is_in_progress = 1;
    return Status::ok;
  }

  /// Sends the offset of the slice's destination to the sender, also before the sender has made its call.
  BEELINE_HOST_DEVICE void answer() {
    ++progress_.handshakes, progress_.is_in_progress = 1;
    group_.sync();  // the rest of the group is done with the destination
    if (group_.thread_rank() != 0) return;
    machine::fence_acquire_release();
    // Answers alternate by parity: the sender may not yet have read the last answer. It has read the answer before
    // that, since it has sent the last message.
    machine::store_packets(&link_.peer_state()->answer[progress_.handshakes & 1u],
                           packets_of(place_, progress_.handshakes));
  }

  /// Waits for the receiver's answer. `target`: offset of the destination in the receiver's slot.
  [[nodiscard]] BEELINE_HOST_DEVICE Status await_answer(std::uint64_t& target) const {
    const machine::PacketPair* answer = &state_->answer[progress_.handshakes & 1u];
    Status status = Status::ok;
    if (group_.thread_rank() == 0) {
      machine::PacketPair pair[1];
      Awaited answered = awaited(progress_.handshakes);
      answered.sequence = progress_.handshakes;  // the value with which `await_packets` compares flags
      answered.compare = Compare::equal;
      status = await_packets(link_.ctx, answered, timeout_, answer, 0, pair);
      acquire_pair(answer);
    }
    return heard(status, answer, target);  // the answer stays there while this message is in progress
  }

  /// Waits for the header. `source`: offset of the slice in the sender's slot.
  [[nodiscard]] BEELINE_HOST_DEVICE Status await_header(std::uint64_t& source) const {
    const ExpectedMessage expected{link_.peer, progress_.sequence + 1, slice_.header};
    const machine::PacketPair* slot = link_.slot(link_.in_ring(), expected.sequence);
    Status status = Status::ok;
    if (group_.thread_rank() == 0) {
      machine::PacketPair pair{};
      status = await_message(link_.ctx, expected, slot, 1, timeout_, pair);
      if (status == Status::invalid_argument) refuse_message(link_.ctx, expected, slot);
      acquire_pair(slot + 1);
    }
    return heard(status, slot + 1, source);  // the offset stays there until the slot is released
  }

  /// Ends a wait of the first thread: with ok, sets `place` to the pair's payload on all threads.
  [[nodiscard]] BEELINE_HOST_DEVICE Status heard(Status first, const machine::PacketPair* pair,
                                                 std::uint64_t& place) const {
    const Status status = agree(group_, first);
    if (status == Status::ok) place = payload_of(machine::load_packets(pair));
    return status;
  }

  /// Moves the slice at once to or from `other`, an address at the peer. nullptr: moves it in chunks through the
  /// receiver's staging memory, with the sender some chunks ahead.
  [[nodiscard]] BEELINE_HOST_DEVICE Status move_pieces(std::byte* other) {
    constexpr std::uint32_t ahead = sends ? message_chunks : 0;
    const bool is_staged = other == nullptr;
    const std::size_t most = is_staged ? link_.channel.chunk_bytes : slice_.bytes;
    for (std::size_t first = progress_.done * most; first < slice_.bytes; first += most) {
      if (is_staged && (!sends || progress_.done >= ahead))
        if (const Status status = await_chunk(ahead); status != Status::ok) return status;
      if (is_staged) other = sends ? link_.out_chunk(progress_.done) : link_.in_chunk(progress_.done);
      const std::size_t left = slice_.bytes - first, bytes = left < most ? left : most;
      if constexpr (sends)
        copy_bytes(group_, other, slice_.data + first, bytes);
      else
        copy_bytes(group_, slice_.data + first, other, bytes);
      ++progress_.done;
      tell_chunk();
    }
    return Status::ok;
  }

  /// Waits until the peer has moved the chunk `ahead` chunks before the next; the peer's earlier writes are then
  /// visible to the group.
  [[nodiscard]] BEELINE_HOST_DEVICE Status await_chunk(std::uint32_t ahead) const {
    std::uint64_t& word = sends ? state_->taken : state_->delivered;
    const std::uint64_t count = progress_.chunks + 1 - ahead;
    Status status = Status::ok;
    if (group_.thread_rank() == 0)
      status = await_word(link_.ctx, awaited(count), timeout_, SystemAtomic<std::uint64_t>(word), Order::memory,
                          [count](std::uint64_t observed) { return observed >= count; });
    return agree(group_, status);
  }
  /// Publishes to the peer that the group has moved a chunk. The last thread does this, since the first thread polls.
  BEELINE_HOST_DEVICE void tell_chunk() {
    MessageState* const theirs = link_.peer_state();
    std::uint64_t& word = sends ? theirs->delivered : theirs->taken;
    ++progress_.chunks;
    group_.sync();
    if (group_.thread_rank() + 1 == group_.size())
      SystemAtomic<std::uint64_t>(word).store(progress_.chunks, std::memory_order_release);
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Awaited awaited(std::uint64_t expected) const {
    if constexpr (sends) return {Operation::send, link_.peer, progress_.sequence, expected};
    return {Operation::receive, link_.peer, progress_.sequence + 1, expected};
  }

  Group group_;
  const MessageLink& link_;
  MessageSlice<Byte> slice_;
  Timeout timeout_;
  MessageState* state_;
  MessageProgress progress_;
  std::uint64_t place_;  ///< offset of the slice in this member's slot
};

/// Moves a slice by rendezvous. Out of line, so that eager messages are not slowed down, with arguments by value: see
/// packets.hpp.
template <class Group, class Byte>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status move_by_handshake(Group group, MessageLink link,
                                                                        MessageSlice<Byte> slice, Timeout timeout) {
  return MessageHandshake<Group, Byte>(group, link, slice, timeout).run();
}

}  // namespace beeline::detail
