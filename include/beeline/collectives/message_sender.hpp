// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The sending end of messages. Up to `MessageChannel::eager_bytes` they are *eager*: header and data go into the
/// receiver's ring, in packets, and the sender is done, whether the receiver has called or not, as long as the ring has
/// room. Longer ones go by rendezvous (impl/message_handshake.hpp).

#include "beeline/collectives/impl/message_handshake.hpp"
#include "beeline/collectives/message_session.hpp"

namespace beeline {

namespace detail {

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
    write_slot(slice.data, static_cast<std::uint32_t>(slice.bytes), slice.header);
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

  /// Writes message `sent_` + 1, then makes ready what the next one needs, while this one travels. A message of whole
  /// words, at most one for each thread, takes the straight way: no loop, no call.
  BEELINE_HOST_DEVICE void write_slot(const std::byte* source, std::uint32_t bytes, std::uint64_t header) {
    const Group& group = session_.group();
    const std::uint32_t sequence = sent_ + 1, i = group.thread_rank();
    const std::uint32_t whole = detail::whole_pairs(source, bytes);
    const std::uint32_t pairs = rewrites_slot_ ? link_.channel.slot_pairs - 1 : detail::payload_pairs(bytes);
    if (i == 0) machine::store_packets(slot_, detail::packets_of(header, sequence));
    if (pairs == whole && whole <= group.size()) [[likely]] {
      if (i < whole)
        machine::store_packets(
            slot_ + 1 + i, detail::packets_of(machine::load_as<std::uint64_t>(source + std::size_t{8} * i), sequence));
    } else {
      detail::write_payload(
          group, {.slot = slot_ + 1, .memory = source, .bytes = bytes, .whole = whole, .pairs = pairs}, sequence);
    }
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
