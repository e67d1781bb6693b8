// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The receiving end of messages. What travels, and when, is said in message_sender.hpp.

#include "beeline/collectives/message_channel.hpp"

namespace beeline {

namespace detail {

/// What a message of `link.peer` is, as its header says and as the receiver expects it.
struct ExpectedMessage {
  MessageLink link;
  std::uint32_t sequence;
  std::uint64_t header;
};

/// Records a message that is not the one that is expected, and aborts the team: its messages no longer fit together.
BEELINE_COLD BEELINE_HOST_DEVICE inline void refuse_message(const Context& ctx, ExpectedMessage expected,
                                                            std::uint64_t header) {
  const Awaited awaited{Operation::receive, expected.link.peer, expected.sequence, expected.header};
  record_wait(ctx, awaited, header, 0, Status::invalid_argument);
  raise_abort(ctx, ctx.own_world_rank);
}

/// Polls for the header in `slot`, and with it for pair `pair` of the slot, until both are there; what does not
/// fit is known from the header alone. `received` is then pair `pair`. One thread calls it.
/// Returns as `poll_until`, and invalid_argument for a header other than the expected one.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status await_message(const Context& ctx, const ExpectedMessage& expected,
                                                              const machine::PacketPair* slot, std::uint32_t pair,
                                                              Timeout timeout, machine::PacketPair& received) {
  const std::uint32_t sequence = expected.sequence;
  bool fits = true;
  const Awaited awaited{Operation::receive, expected.link.peer, sequence, sequence, Compare::equal};
  const Status status = poll_until(ctx, awaited, timeout, [&](std::uint64_t& observed) {
    const machine::PacketPair header = machine::load_packets(slot);
    received = machine::load_packets(slot + pair);
    observed = header.low >> 32;
    if (!has_flags(header, sequence)) return false;
    fits = payload_of(header) == expected.header;
    return !fits || has_flags(received, sequence);
  });
  return status == Status::ok && !fits ? Status::invalid_argument : status;
}

/// A message by rendezvous, as one lane's receiver sees it.
template <class Group>
class ReceivingMeeting {
 public:
  BEELINE_HOST_DEVICE ReceivingMeeting(const Group& group, const Context& ctx, const MessageChannel& channel,
                                       MessageLink link, MessageSlice<std::byte> slice, Timeout timeout)
      : group_(group), ctx_(ctx), channel_(channel), link_(link), slice_(slice), timeout_(timeout),
        state_(link.own_state(ctx, channel)), progress_(state_->in), target_(place_for(ctx, link.peer, slice.data)) {
    group_.sync();  // every thread has read the progress before the first changes it
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status run() {
    const Status status = move();
    if (status == Status::ok) ++progress_.sequence, progress_.is_meeting = 0, progress_.done = 0;
    if (group_.thread_rank() == 0) state_->in = progress_;
    return status;
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE Status move() {
    if (progress_.is_meeting == 0) answer();
    std::uint64_t source = no_place;
    if (const Status status = await_header(source); status != Status::ok) return status;
    if (target_ != no_place) {
      const Status status = await_chunks(group_, ctx_, &state_->delivered, awaited(), timeout_);
      if (status == Status::ok) ++progress_.chunks;
      return status;
    }
    if (source == no_place) return receive_chunks();
    copy_bytes(group_, slice_.data, address_of(ctx_, link_.peer, source), slice_.bytes);
    take();
    return Status::ok;
  }

  /// Tells the sender where the slice is to lie: before it has called, if this member is the first.
  BEELINE_HOST_DEVICE void answer() {
    ++progress_.meetings, progress_.is_meeting = 1;
    group_.sync();  // the rest of the group is done with the destination
    if (group_.thread_rank() != 0) return;
    machine::fence_acquire_release();
    // By parity: the sender may still be about to read the last answer. The one before it has read, since it has sent
    // the last message.
    machine::store_packets(&link_.peer_state(ctx_, channel_)->meeting[progress_.meetings & 1u],
                           packets_of(target_, progress_.meetings));
  }

  /// `source`: where the slice lies in the sender's slot.
  [[nodiscard]] BEELINE_HOST_DEVICE Status await_header(std::uint64_t& source) const {
    const ExpectedMessage expected{link_, progress_.sequence + 1, slice_.header};
    const machine::PacketPair* slot =
        message_slot(link_.in_ring(ctx_, channel_), expected.sequence, channel_.depth, channel_.slot_pairs);
    Status status = Status::ok;
    if (group_.thread_rank() == 0) {
      machine::PacketPair place{};
      status = await_message(ctx_, expected, slot, 1, timeout_, place);
      if (status == Status::invalid_argument) refuse_message(ctx_, expected, payload_of(machine::load_packets(slot)));
      acquire_pair(slot + 1);
    }
    status = agree(group_, status);
    // It stays there until the slot is given back.
    if (status == Status::ok) source = payload_of(machine::load_packets(slot + 1));
    return status;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status receive_chunks() {
    const std::size_t most = channel_.chunk_bytes;
    const std::uint64_t all = (slice_.bytes + most - 1) / most;
    while (progress_.done < all) {
      if (const Status status = await_chunks(group_, ctx_, &state_->delivered, awaited(), timeout_);
          status != Status::ok)
        return status;
      const std::size_t first = progress_.done * most, left = slice_.bytes - first;
      copy_bytes(group_, slice_.data + first, link_.in_chunk(ctx_, channel_, progress_.done),
                 left < most ? left : most);
      ++progress_.done;
      take();
    }
    return Status::ok;
  }

  BEELINE_HOST_DEVICE void take() { tell_chunks(group_, &link_.peer_state(ctx_, channel_)->taken, ++progress_.chunks); }
  /// The next chunk.
  [[nodiscard]] BEELINE_HOST_DEVICE Awaited awaited() const {
    return {Operation::receive, link_.peer, progress_.sequence + 1, progress_.chunks + 1};
  }

  Group group_;
  const Context& ctx_;
  const MessageChannel& channel_;
  MessageLink link_;
  MessageSlice<std::byte> slice_;
  Timeout timeout_;
  MessageState* state_;
  MessageProgress progress_;
  std::uint64_t target_;
};

/// Out of the way of eager messages, and by value: see packets.hpp.
template <class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status receive_by_meeting(Group group, const Context& ctx,
                                                                         MessageChannel channel, MessageLink link,
                                                                         MessageSlice<std::byte> slice,
                                                                         Timeout timeout) {
  return ReceivingMeeting<Group>(group, ctx, channel, link, slice, timeout).run();
}

/// Stores what pair `i` behind a header holds.
BEELINE_HOST_DEVICE inline void store_payload(const SlotPart<const machine::PacketPair, std::byte>& part,
                                              std::uint32_t i, const machine::PacketPair& pair) {
  std::byte* const to = part.memory + std::size_t{8} * i;
  if (i < part.whole) [[likely]]
    machine::store_as(to, payload_of(pair));
  else
    scatter_bytes(to, payload_of(pair), part.bytes - 8 * i);
}

/// Reads the pairs behind a slot's header but the first of each thread.
template <class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status
read_payload(Group group, const Context& ctx, Awaited awaited, Timeout timeout,
             SlotPart<const machine::PacketPair, std::byte> part) {
  const std::uint32_t threads = group.size();
  std::uint32_t i = threads + group.thread_rank();
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (; status == Status::ok && i + 3 * threads < part.pairs; i += 4 * threads) {
    machine::PacketPair pairs[4];
    status = await_packets(ctx, awaited, timeout, part.slot + i, threads, pairs);
    for (unsigned k = 0; k < 4 && status == Status::ok; ++k) store_payload(part, i + k * threads, pairs[k]);
  }
  BEELINE_NO_UNROLL
  for (; status == Status::ok && i < part.pairs; i += threads) {
    machine::PacketPair pair[1];
    status = await_packets(ctx, awaited, timeout, part.slot + i, 0, pair);
    if (status == Status::ok) store_payload(part, i, pair[0]);
  }
  return status;
}

}  // namespace detail

inline namespace BEELINE_CALLS {

/// The receiving end of one lane from `peer`, opened by one group; while it is open, its state is in registers, so
/// loops keep it. At most one group of a rank has it open at a time.
template <class Group>
class MessageReceiver {
 public:
  /// Every thread of `group` calls it. A peer outside the team: see device/access.hpp.
  BEELINE_HOST_DEVICE MessageReceiver(const Group& group, const Context& ctx, const MessageChannel& channel,
                                      std::uint32_t peer, std::uint32_t lane = 0)
      : group_(group), ctx_(ctx), channel_(channel), link_{detail::checked_peer(ctx, Operation::receive, peer), lane},
        state_(link_.own_state(ctx, channel)), ring_(link_.in_ring(ctx, channel)) {
    load();
  }
  BEELINE_HOST_DEVICE ~MessageReceiver() {
    return_credit();
    save();
  }
  MessageReceiver(const MessageReceiver&) = delete;
  MessageReceiver& operator=(const MessageReceiver&) = delete;

  /// Receives the next message of `peer`, which is one of `bytes`, into `destination`, any local address. Every thread
  /// of the group calls it, and gets the same status; with ok the message is visible to the group. After `timeout` the
  /// same call continues. A message of another length is refused: the team is aborted, and the host's error names both.
  /// Returns ok, timeout, deadline, aborted, invalid_argument.
  [[nodiscard]] BEELINE_HOST_DEVICE Status receive(void* destination, std::size_t bytes,
                                                   Timeout timeout = Timeout::none()) {
    return receive_slice({static_cast<std::byte*>(destination), bytes, detail::message_header(bytes, 1),
                          bytes <= channel_.eager_bytes && bytes <= channel_.slot_bytes()},
                         timeout);
  }

  /// The same with the slice of this lane: as many groups receive the message as it has `slices`, on lanes 0, 1, ...
  [[nodiscard]] BEELINE_HOST_DEVICE Status receive_part(void* destination, std::size_t bytes, std::uint32_t slices,
                                                        Timeout timeout = Timeout::none()) {
    return receive_slice(detail::slice_of(channel_, static_cast<std::byte*>(destination), bytes, link_.lane, slices),
                         timeout);
  }

 private:
  BEELINE_HOST_DEVICE void load() {
    group_.sync();  // what an earlier receiver of this group left in memory is there
    received_ = state_->in.sequence;
    group_.sync();  // every thread has read it before the first changes it
  }
  BEELINE_HOST_DEVICE void save() {
    if (group_.thread_rank() == 0) state_->in.sequence = received_;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status receive_slice(const detail::MessageSlice<std::byte>& slice,
                                                         Timeout timeout) {
    if (owes_credit_) [[unlikely]]
      return_credit();
    if (!slice.is_eager) [[unlikely]] {
      save();
      group_.sync();
      const Status status = detail::receive_by_meeting(group_, ctx_, channel_, link_, slice, timeout);
      load();
      if (status == Status::ok) owes_credit_ = detail::is_half_lap(received_, channel_.depth);
      return status;
    }
    return read_slot(slice.data, static_cast<std::uint32_t>(slice.bytes), slice.header, timeout);
  }

  /// Each thread polls for the header together with its first word.
  BEELINE_HOST_DEVICE Status read_slot(std::byte* destination, std::uint32_t bytes, std::uint64_t header,
                                       Timeout timeout) {
    const std::uint32_t sequence = received_ + 1, i = group_.thread_rank();
    const std::uint32_t pairs = detail::payload_pairs(bytes);
    const detail::SlotPart<const machine::PacketPair, std::byte> part{
        .slot = detail::message_slot(ring_, sequence, channel_.depth, channel_.slot_pairs) + 1,
        .memory = destination,
        .bytes = bytes,
        .whole = detail::whole_pairs(destination, bytes),
        .pairs = pairs};
    Status status = Status::ok;
    if (i < pairs || i == 0) {
      const detail::ExpectedMessage expected{link_, sequence, header};
      machine::PacketPair pair{};
      status = detail::await_message(ctx_, expected, part.slot - 1, i < pairs ? 1 + i : 0, timeout, pair);
      if (status == Status::ok && i < pairs) detail::store_payload(part, i, pair);
      if (status == Status::invalid_argument && i == 0) [[unlikely]]
        detail::refuse_message(ctx_, expected, detail::payload_of(machine::load_packets(part.slot - 1)));
    }
    if (pairs > group_.size() && status == Status::ok) [[unlikely]]
      status = detail::read_payload(group_, ctx_, {Operation::receive, link_.peer, sequence, sequence}, timeout, part);
    status = agree(group_, status);
    if (status != Status::ok) return status;
    received_ = sequence;
    owes_credit_ = detail::is_half_lap(sequence, channel_.depth);
    return Status::ok;
  }

  /// Credits are due twice a lap. They go back when the next message is asked for: its way here hides what the release
  /// costs.
  BEELINE_HOST_DEVICE void return_credit() {
    if (owes_credit_ && group_.thread_rank() == 0)
      detail::SystemAtomic<std::uint32_t>(link_.peer_state(ctx_, channel_)->consumed)
          .store(received_, cuda::memory_order_release);
    owes_credit_ = false;
  }

  Group group_;
  const Context& ctx_;
  MessageChannel channel_;
  detail::MessageLink link_;
  MessageState* state_;
  machine::PacketPair* ring_;
  std::uint32_t received_ = 0;
  bool owes_credit_ = false;  ///< whether message `received_` is the last of half a lap
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
