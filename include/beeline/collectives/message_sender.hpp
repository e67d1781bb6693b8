// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The sending end of messages. Messages shorter than `MessageChannel::eager_end` are *eager*: the sender writes header
/// and data into the receiver's ring, in packets. If the ring has room, the sender does not wait for the receiver.
/// Longer messages use a rendezvous, a handshake of sender and receiver (impl/message_handshake.hpp).

#include "beeline/collectives/impl/message_chunks.hpp"
#include "beeline/collectives/impl/message_handshake.hpp"
#include "beeline/collectives/message_session.hpp"

namespace beeline {

inline namespace BEELINE_CALLS {

/// A session's sending end towards `peer`. Loops keep a sender open, since its state is then in registers.
template <class Group>
class MessageSender {
 public:
  /// Every thread of the session's group calls it. Stops the caller at a peer outside the team: see device/access.hpp.
  BEELINE_HOST_DEVICE MessageSender(const MessageSession<Group>& session, std::uint32_t peer)
      : session_(session), link_(session.link_to(Operation::send, peer)), ring_(link_.out_ring()) {
    load();
  }
  BEELINE_HOST_DEVICE ~MessageSender() { save(); }
  MessageSender(const MessageSender&) = delete;
  MessageSender& operator=(const MessageSender&) = delete;

  /// Sends a message: as `send` in messages.hpp.
  [[nodiscard]] BEELINE_HOST_DEVICE Status send(const void* source, std::size_t bytes,
                                                const MessageSessionCall& call = {}) {
    const auto slice = session_.slice_of(static_cast<const std::byte*>(source), bytes, call.elements);
    if (!session_.is_eager(bytes)) [[unlikely]]
      return send_by_handshake(slice, call.timeout);
    if (sent_ - credit_ == link_.channel.depth) [[unlikely]]
      if (const Status status = renew_credit(call.timeout); status != Status::ok) return status;
    write_slot(slice);
    return Status::ok;
  }

 private:
  BEELINE_HOST_DEVICE void load() {
    if (!session_.exists()) return;
    session_.group().sync();  // the state that an earlier sender of this group wrote is visible
    const MessageProgress& kept = link_.own_state()->out;
    sent_ = kept.sequence, credit_ = kept.credit;
    prepare_slot();
    session_.group().sync();  // every thread has read the state before thread 0 changes it
  }
  BEELINE_HOST_DEVICE void save() {
    if (!session_.exists() || session_.group().thread_rank() != 0) return;
    MessageProgress& kept = link_.own_state()->out;
    kept.sequence = sent_, kept.credit = credit_;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status send_by_handshake(const detail::MessageSlice<const std::byte>& slice,
                                                             Timeout timeout) {
    if (!session_.exists()) return Status::invalid_argument;
    if (link_.channel.across != nullptr) return detail::move_by_chunks(session_.group(), link_, slice, timeout);
    save();
    session_.group().sync();
    const Status status = detail::move_by_handshake(session_.group(), link_, slice, timeout);
    load();
    return status;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status renew_credit(Timeout timeout) {
    return detail::renew_credit(session_.group(), link_, sent_ + 1, credit_, timeout);
  }

  /// Writes message `sent_` + 1, then prepares the slot of the next message while this one travels.
  BEELINE_HOST_DEVICE void write_slot(const detail::MessageSlice<const std::byte>& slice) {
    const Group& group = session_.group();
    const std::uint32_t sequence = sent_ + 1;
    const auto bytes = static_cast<std::uint32_t>(slice.bytes);
    if (group.thread_rank() == 0) machine::store_packets(slot_, detail::packets_of(slice.header, sequence));
    LL::write(group, sequence, {slot_ + 1, slice.data, bytes},
              rewrites_slot_ ? link_.channel.slot_pairs - 1 : detail::payload_pairs(bytes));
    sent_ = sequence;
    prepare_slot();
    // Reads the credits as soon as they are due, while this message travels, not when the next message needs them.
    if (sent_ - credit_ == link_.channel.depth) [[unlikely]]
      static_cast<void>(renew_credit(Timeout::test()));
  }
  BEELINE_HOST_DEVICE void prepare_slot() {
    slot_ = link_.slot(ring_, sent_ + 1);
    rewrites_slot_ = link_.rewrites_slot(sent_ + 1);
  }

  MessageSession<Group> session_;
  detail::MessageLink link_;
  machine::PacketPair* ring_;
  std::uint32_t sent_ = 0, credit_ = 0;
  machine::PacketPair* slot_ = nullptr;  ///< slot of message `sent_` + 1
  bool rewrites_slot_ = false;           ///< whether that message rewrites its whole slot
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
