// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The sending end of messages. Up to `MessageChannel::eager_bytes` they are *eager*: header and data go into the
/// receiver's ring, in packets, and the sender is done, whether the receiver has called or not, as long as the ring has
/// room. Longer ones go by rendezvous (impl/message_handshake.hpp).

#include "beeline/collectives/impl/message_handshake.hpp"
#include "beeline/collectives/message_session.hpp"

namespace beeline {

inline namespace BEELINE_CALLS {

/// A session's sending end towards `peer`, for loops: while it is open, its state is in registers.
template <class Group>
class MessageSender {
 public:
  /// Every thread of the session's group calls it. A peer outside the team: see device/access.hpp.
  BEELINE_HOST_DEVICE MessageSender(const MessageSession<Group>& session, std::uint32_t peer)
      : session_(session), link_(session.link_to(Operation::send, peer)), ring_(link_.out_ring()) {
    load();
  }
  BEELINE_HOST_DEVICE ~MessageSender() { save(); }
  MessageSender(const MessageSender&) = delete;
  MessageSender& operator=(const MessageSender&) = delete;

  /// As `send` below.
  [[nodiscard]] BEELINE_HOST_DEVICE Status send(const void* source, std::size_t bytes,
                                                const MessageSessionCall& call = {}) {
    const auto slice = session_.slice_of(static_cast<const std::byte*>(source), bytes);
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
    session_.group().sync();  // what an earlier sender of this group left in memory is there
    const MessageProgress& kept = link_.own_state()->out;
    sent_ = kept.sequence, credit_ = kept.credit;
    prepare_slot();
    session_.group().sync();  // every thread has read it before the first changes it
  }
  BEELINE_HOST_DEVICE void save() {
    if (!session_.exists() || session_.group().thread_rank() != 0) return;
    MessageProgress& kept = link_.own_state()->out;
    kept.sequence = sent_, kept.credit = credit_;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status send_by_handshake(const detail::MessageSlice<const std::byte>& slice,
                                                             Timeout timeout) {
    if (!session_.exists()) return Status::invalid_argument;
    save();
    session_.group().sync();
    const Status status = detail::move_by_handshake(session_.group(), link_, slice, timeout);
    load();
    return status;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status renew_credit(Timeout timeout) {
    return detail::renew_credit(session_.group(), link_, sent_ + 1, credit_, timeout);
  }

  /// Writes message `sent_` + 1, then makes ready what the next one needs, while this one travels.
  BEELINE_HOST_DEVICE void write_slot(const detail::MessageSlice<const std::byte>& slice) {
    const Group& group = session_.group();
    const std::uint32_t sequence = sent_ + 1;
    const auto bytes = static_cast<std::uint32_t>(slice.bytes);
    if (group.thread_rank() == 0) machine::store_packets(slot_, detail::packets_of(slice.header, sequence));
    LL::write(group, sequence, {slot_ + 1, slice.data, bytes},
              rewrites_slot_ ? link_.channel.slot_pairs - 1 : detail::payload_pairs(bytes));
    sent_ = sequence;
    prepare_slot();
    // Credits are looked for when they are due, not when they are used up: this message travels meanwhile.
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
  machine::PacketPair* slot_ = nullptr;  ///< of message `sent_` + 1
  bool rewrites_slot_ = false;           ///< whether that message rewrites its whole slot
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
