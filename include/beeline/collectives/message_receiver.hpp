// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The receiving end of messages. message_sender.hpp describes the protocols.

#include "beeline/collectives/impl/message_chunks.hpp"
#include "beeline/collectives/impl/message_handshake.hpp"
#include "beeline/collectives/message_session.hpp"

namespace beeline {

namespace detail {

/// Stores the payload of pair `i` after the header.
BEELINE_HOST_DEVICE inline void store_payload(const SlotPart<const machine::PacketPair, std::byte>& part,
                                              std::uint32_t i, const machine::PacketPair& pair) {
  std::byte* const to = part.memory + std::size_t{8} * i;
  if (i < part.whole) [[likely]]
    machine::store_as(to, payload_of(pair));
  else
    scatter_bytes(to, payload_of(pair), part.bytes - 8 * i);
}

/// Reads the pairs after a slot's header, except the first pair of each thread.
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

/// A session's receiving end from `peer`. Loops keep a receiver open, since its state is then in registers.
template <class Group>
class MessageReceiver {
 public:
  /// Every thread of the session's group calls it. Stops the caller at a peer outside the team: see device/access.hpp.
  BEELINE_HOST_DEVICE MessageReceiver(const MessageSession<Group>& session, std::uint32_t peer)
      : session_(session), link_(session.link_to(Operation::receive, peer)), ring_(link_.in_ring()) {
    load();
  }
  BEELINE_HOST_DEVICE ~MessageReceiver() {
    return_credit();
    save();
  }
  MessageReceiver(const MessageReceiver&) = delete;
  MessageReceiver& operator=(const MessageReceiver&) = delete;

  /// Receives a message: as `receive` in messages.hpp.
  [[nodiscard]] BEELINE_HOST_DEVICE Status receive(void* destination, std::size_t bytes,
                                                   const MessageSessionCall& call = {}) {
    const auto slice = session_.slice_of(static_cast<std::byte*>(destination), bytes, call.elements);
    if (owes_credit_) [[unlikely]]
      return_credit();
    if (!session_.is_eager(bytes)) [[unlikely]]
      return receive_by_handshake(slice, call.timeout);
    return read_slot(slice.data, static_cast<std::uint32_t>(slice.bytes), slice.header, call.timeout);
  }

 private:
  BEELINE_HOST_DEVICE void load() {
    if (!session_.exists()) return;
    session_.group().sync();  // the state that an earlier receiver of this group wrote is visible
    received_ = link_.own_state()->in.sequence;
    session_.group().sync();  // every thread has read the state before thread 0 changes it
  }
  BEELINE_HOST_DEVICE void save() {
    if (session_.exists() && session_.group().thread_rank() == 0) link_.own_state()->in.sequence = received_;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status receive_by_handshake(const detail::MessageSlice<std::byte>& slice,
                                                                Timeout timeout) {
    if (!session_.exists()) return Status::invalid_argument;
    if (link_.channel.across != nullptr) return detail::move_by_chunks(session_.group(), link_, slice, timeout);
    save();
    session_.group().sync();
    const Status status = detail::move_by_handshake(session_.group(), link_, slice, timeout);
    load();
    if (status == Status::ok) owes_credit_ = link_.returns_credit(received_);
    return status;
  }

  /// Each thread polls for the header together with its first word.
  [[nodiscard]] BEELINE_HOST_DEVICE Status read_slot(std::byte* destination, std::uint32_t bytes, std::uint64_t header,
                                                     Timeout timeout) {
    const Group& group = session_.group();
    const std::uint32_t sequence = received_ + 1, i = group.thread_rank();
    const std::uint32_t pairs = detail::payload_pairs(bytes);
    const detail::SlotPart<const machine::PacketPair, std::byte> part{.slot = link_.slot(ring_, sequence) + 1,
                                                                      .memory = destination,
                                                                      .bytes = bytes,
                                                                      .whole = LL::whole_pairs(destination, bytes),
                                                                      .pairs = pairs};
    Status status = Status::ok;
    if (i < pairs || i == 0) {
      const detail::ExpectedMessage expected{link_.peer, sequence, header};
      machine::PacketPair pair{};
      status = detail::await_message(link_.ctx, expected, part.slot - 1, i < pairs ? 1 + i : 0, timeout, pair);
      if (status == Status::ok && i < pairs) detail::store_payload(part, i, pair);
      if (status == Status::invalid_argument && i == 0) [[unlikely]]
        detail::refuse_message(link_.ctx, expected, part.slot - 1);
    }
    if (pairs > group.size() && status == Status::ok) [[unlikely]]
      status =
          detail::read_payload(group, link_.ctx, {Operation::receive, link_.peer, sequence, sequence}, timeout, part);
    status = agree(group, status);
    if (status != Status::ok) return status;
    received_ = sequence;
    owes_credit_ = link_.returns_credit(sequence);
    return Status::ok;
  }

  /// Credits are returned when the next message is received, whose travel time hides the cost of the release.
  BEELINE_HOST_DEVICE void return_credit() {
    if (owes_credit_ && session_.group().thread_rank() == 0)
      detail::SystemAtomic<std::uint32_t>(link_.peer_state()->consumed).store(received_, std::memory_order_release);
    owes_credit_ = false;
  }

  MessageSession<Group> session_;
  detail::MessageLink link_;
  machine::PacketPair* ring_;
  std::uint32_t received_ = 0;
  bool owes_credit_ = false;  ///< whether message `received_` is the last of half a lap
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
