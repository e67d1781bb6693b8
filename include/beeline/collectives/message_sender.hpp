// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The sending end of messages: eager, or by rendezvous.
///
/// *Eager*, up to `MessageChannel::eager_bytes`: header and data go into the receiver's ring, in packets, and the
/// sender is done, whether the receiver has called or not, as long as the ring has room.
///
/// *Rendezvous*: the header goes first, with the place of the source in the sender's slot. The receiver answers where
/// the data is to lie in its own. If that is in its heap, the sender stores it there. If not, but the source lies in
/// the sender's heap, the receiver reads it. Otherwise it goes in chunks through the receiver's staging memory.
/// Source: seed 000, 2.4.5 (eager and rendezvous protocol); MPI 4.0, 3.5.

#include "beeline/collectives/message_channel.hpp"

namespace beeline {

namespace detail {

/// A message by rendezvous, as one lane's sender sees it.
template <class Group>
class SendingMeeting {
 public:
  BEELINE_HOST_DEVICE SendingMeeting(const Group& group, const Context& ctx, const MessageChannel& channel,
                                     MessageLink link, MessageSlice<const std::byte> slice, Timeout timeout)
      : group_(group), ctx_(ctx), channel_(channel), link_(link), slice_(slice), timeout_(timeout),
        state_(link.own_state(ctx, channel)), progress_(state_->out), source_(place_for(ctx, link.peer, slice.data)) {
    group_.sync();  // every thread has read the progress before the first changes it
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status run() {
    const Status status = move();
    if (status == Status::ok) progress_.is_meeting = 0, progress_.done = 0;
    if (group_.thread_rank() == 0) state_->out = progress_;
    return status;
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE Status move() {
    if (progress_.is_meeting == 0)
      if (const Status status = announce(); status != Status::ok) return status;
    std::uint64_t target = no_place;
    if (const Status status = await_answer(target); status != Status::ok) return status;
    if (target != no_place) {
      copy_bytes(group_, address_of(ctx_, link_.peer, target), slice_.data, slice_.bytes);
      deliver();
      return Status::ok;
    }
    if (source_ == no_place) return send_chunks();
    const Status status = await_chunks(group_, ctx_, &state_->taken, awaited(progress_.chunks + 1), timeout_);
    if (status == Status::ok) ++progress_.chunks;
    return status;
  }

  /// The header, and where the source lies.
  [[nodiscard]] BEELINE_HOST_DEVICE Status announce() {
    const std::uint32_t sequence = progress_.sequence + 1, depth = channel_.depth;
    if (progress_.sequence - progress_.credit == depth) {
      const std::uint32_t needed = sequence - depth;
      const Status status = await_consumed(group_, ctx_, awaited(needed), timeout_, &state_->consumed);
      if (status != Status::ok) return status;
      progress_.credit = (needed + depth / 2 - 1) & ~(depth / 2 - 1);
    }
    machine::PacketPair* slot = message_slot(link_.out_ring(ctx_, channel_), sequence, depth, channel_.slot_pairs);
    group_.sync();  // the rest of the group has written its part of the source
    if (group_.thread_rank() == 0) {
      machine::fence_acquire_release();
      machine::store_packets(slot, packets_of(slice_.header, sequence));
      machine::store_packets(slot + 1, packets_of(source_, sequence));
    }
    const std::uint32_t pairs = rewrites_slot(sequence, depth) ? channel_.slot_pairs : 0;
    BEELINE_NO_UNROLL
    for (std::uint32_t i = 2 + group_.thread_rank(); i < pairs; i += group_.size())
      machine::store_packets(slot + i, packets_of(0, sequence));
    progress_.sequence = sequence, ++progress_.meetings, progress_.is_meeting = 1;
    return Status::ok;
  }

  /// `target`: where the slice is to lie in the receiver's slot.
  [[nodiscard]] BEELINE_HOST_DEVICE Status await_answer(std::uint64_t& target) const {
    const machine::PacketPair* answer = &state_->meeting[progress_.meetings & 1u];
    Status status = Status::ok;
    if (group_.thread_rank() == 0) {
      machine::PacketPair pair[1];
      Awaited answered = awaited(progress_.meetings);
      answered.sequence = progress_.meetings;  // what `await_packets` compares flags with
      answered.compare = Compare::equal;
      status = await_packets(ctx_, answered, timeout_, answer, 0, pair);
      acquire_pair(answer);
    }
    status = agree(group_, status);
    // It stays there while this message is under way.
    if (status == Status::ok) target = payload_of(machine::load_packets(answer));
    return status;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status send_chunks() {
    const std::size_t most = channel_.chunk_bytes;
    const std::uint64_t all = (slice_.bytes + most - 1) / most;
    while (progress_.done < all) {
      if (progress_.done >= message_chunks) {
        const std::uint64_t needed = progress_.chunks + 1 - message_chunks;
        const Status status = await_chunks(group_, ctx_, &state_->taken, awaited(needed), timeout_);
        if (status != Status::ok) return status;
      }
      const std::size_t first = progress_.done * most, left = slice_.bytes - first;
      copy_bytes(group_, link_.out_chunk(ctx_, channel_, progress_.done), slice_.data + first,
                 left < most ? left : most);
      ++progress_.done;
      deliver();
    }
    return Status::ok;
  }

  BEELINE_HOST_DEVICE void deliver() {
    tell_chunks(group_, &link_.peer_state(ctx_, channel_)->delivered, ++progress_.chunks);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Awaited awaited(std::uint64_t expected) const {
    return {Operation::send, link_.peer, progress_.sequence, expected};
  }

  Group group_;
  const Context& ctx_;
  const MessageChannel& channel_;
  MessageLink link_;
  MessageSlice<const std::byte> slice_;
  Timeout timeout_;
  MessageState* state_;
  MessageProgress progress_;
  std::uint64_t source_;
};

/// Out of the way of eager messages, and by value: see packets.hpp.
template <class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status send_by_meeting(Group group, const Context& ctx,
                                                                      MessageChannel channel, MessageLink link,
                                                                      MessageSlice<const std::byte> slice,
                                                                      Timeout timeout) {
  return SendingMeeting<Group>(group, ctx, channel, link, slice, timeout).run();
}

/// Writes the pairs behind a slot's header that the straight way leaves out.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE void write_payload(Group group, SlotPart<machine::PacketPair, const std::byte> part,
                                                    std::uint32_t sequence) {
  const std::uint32_t threads = group.size();
  std::uint32_t i = group.thread_rank();
  BEELINE_NO_UNROLL
  for (; i + 3 * threads < part.whole; i += 4 * threads) {
    std::uint64_t words[4];
    for (unsigned k = 0; k < 4; ++k)
      words[k] = machine::load_as<std::uint64_t>(part.memory + std::size_t{8} * (i + k * threads));
    for (unsigned k = 0; k < 4; ++k)
      machine::store_packets(part.slot + i + k * threads, packets_of(words[k], sequence));
  }
  BEELINE_NO_UNROLL
  for (; i < part.whole; i += threads)
    machine::store_packets(part.slot + i,
                           packets_of(machine::load_as<std::uint64_t>(part.memory + std::size_t{8} * i), sequence));
  if (part.pairs != part.whole) write_rest(group, part, sequence);
}

}  // namespace detail

inline namespace BEELINE_CALLS {

/// The sending end of one lane to `peer`, opened by one group; while it is open, its state is in registers, so loops
/// keep it. At most one group of a rank has it open at a time.
template <class Group>
class MessageSender {
 public:
  /// Every thread of `group` calls it. A peer outside the team: see device/access.hpp.
  BEELINE_HOST_DEVICE MessageSender(const Group& group, const Context& ctx, const MessageChannel& channel,
                                    std::uint32_t peer, std::uint32_t lane = 0)
      : group_(group), ctx_(ctx), channel_(channel), link_{detail::checked_peer(ctx, Operation::send, peer), lane},
        state_(link_.own_state(ctx, channel)), ring_(link_.out_ring(ctx, channel)) {
    load();
  }
  BEELINE_HOST_DEVICE ~MessageSender() { save(); }
  MessageSender(const MessageSender&) = delete;
  MessageSender& operator=(const MessageSender&) = delete;

  /// Sends `bytes` from `source`, any local address. Every thread of the group calls it, and gets the same status.
  /// With ok on every thread `source` may be reused. Up to `eager_bytes` it waits only while the receiver is `depth`
  /// messages behind; above, for the receiver. After `timeout` the same call continues. Returns ok, timeout, deadline,
  /// aborted.
  [[nodiscard]] BEELINE_HOST_DEVICE Status send(const void* source, std::size_t bytes,
                                                Timeout timeout = Timeout::none()) {
    return send_slice({static_cast<const std::byte*>(source), bytes, detail::message_header(bytes, 1),
                       bytes <= channel_.eager_bytes && bytes <= channel_.slot_bytes()},
                      timeout);
  }

  /// The same with the slice of this lane: as many groups send the message as it has `slices`, on lanes 0, 1, ...
  [[nodiscard]] BEELINE_HOST_DEVICE Status send_part(const void* source, std::size_t bytes, std::uint32_t slices,
                                                     Timeout timeout = Timeout::none()) {
    return send_slice(detail::slice_of(channel_, static_cast<const std::byte*>(source), bytes, link_.lane, slices),
                      timeout);
  }

 private:
  BEELINE_HOST_DEVICE void load() {
    group_.sync();  // what an earlier sender of this group left in memory is there
    sent_ = state_->out.sequence, credit_ = state_->out.credit;
    prepare_slot();
    group_.sync();  // every thread has read it before the first changes it
  }
  BEELINE_HOST_DEVICE void save() {
    if (group_.thread_rank() == 0) state_->out.sequence = sent_, state_->out.credit = credit_;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status send_slice(const detail::MessageSlice<const std::byte>& slice,
                                                      Timeout timeout) {
    if (!slice.is_eager) [[unlikely]] {
      save();
      group_.sync();
      const Status status = detail::send_by_meeting(group_, ctx_, channel_, link_, slice, timeout);
      load();
      return status;
    }
    if (sent_ - credit_ == channel_.depth) [[unlikely]]
      if (const Status status = renew_credit(timeout); status != Status::ok) return status;
    write_slot(slice.data, static_cast<std::uint32_t>(slice.bytes), slice.header);
    return Status::ok;
  }

  /// Every thread decides alike: `credit_` follows from the sequence, not from what each thread happened to see.
  BEELINE_HOST_DEVICE Status renew_credit(Timeout timeout) {
    const std::uint32_t depth = channel_.depth, needed = sent_ + 1 - depth;
    const Awaited awaited{Operation::send, link_.peer, sent_ + 1, needed};
    const Status status = detail::await_consumed(group_, ctx_, awaited, timeout, &state_->consumed);
    // Credits come back at multiples of half a lap only, so that `needed` of them means all up to the next multiple.
    if (status == Status::ok) credit_ = (needed + depth / 2 - 1) & ~(depth / 2 - 1);
    return status;
  }

  /// Writes message `sent_` + 1, then makes ready what the next one needs, while this one travels. A message of whole
  /// words, at most one for each thread, takes the straight way: no loop, no call.
  BEELINE_HOST_DEVICE void write_slot(const std::byte* source, std::uint32_t bytes, std::uint64_t header) {
    const std::uint32_t sequence = sent_ + 1, i = group_.thread_rank();
    const std::uint32_t whole = detail::whole_pairs(source, bytes);
    const std::uint32_t pairs = rewrites_slot_ ? channel_.slot_pairs - 1 : detail::payload_pairs(bytes);
    if (i == 0) machine::store_packets(slot_, detail::packets_of(header, sequence));
    if (pairs == whole && whole <= group_.size()) [[likely]] {
      if (i < whole)
        machine::store_packets(
            slot_ + 1 + i, detail::packets_of(machine::load_as<std::uint64_t>(source + std::size_t{8} * i), sequence));
    } else {
      detail::write_payload(
          group_, {.slot = slot_ + 1, .memory = source, .bytes = bytes, .whole = whole, .pairs = pairs}, sequence);
    }
    sent_ = sequence;
    prepare_slot();
    // Credits are looked for when they are due, not when they are used up: this message travels meanwhile.
    if (sent_ - credit_ == channel_.depth) [[unlikely]]
      static_cast<void>(renew_credit(Timeout::test()));
  }
  BEELINE_HOST_DEVICE void prepare_slot() {
    slot_ = detail::message_slot(ring_, sent_ + 1, channel_.depth, channel_.slot_pairs);
    rewrites_slot_ = detail::rewrites_slot(sent_ + 1, channel_.depth);
  }

  Group group_;
  const Context& ctx_;
  MessageChannel channel_;
  detail::MessageLink link_;
  MessageState* state_;
  machine::PacketPair* ring_;
  std::uint32_t sent_ = 0, credit_ = 0;
  machine::PacketPair* slot_ = nullptr;  ///< of message `sent_` + 1
  bool rewrites_slot_ = false;           ///< whether that message rewrites its whole slot
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
