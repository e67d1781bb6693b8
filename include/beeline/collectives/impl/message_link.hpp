// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Addresses of both ends of a link of a message channel, and the operations that both ends share.

#include "beeline/collectives/impl/handshake.hpp"
#include "beeline/collectives/impl/words.hpp"
#include "beeline/collectives/message_channel.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline::detail {

/// The slice of a message that one session moves; `Byte` is const at the sender.
template <class Byte>
struct MessageSlice {
  Byte* data;
  std::size_t bytes;
  std::uint64_t header;  ///< header of the whole message
};

/// One session between this member and `peer`.
struct MessageLink {
  const Context& ctx;
  MessageChannel channel;
  std::uint32_t peer, session;

  /// This member's state of the messages with `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE MessageState* own_state() const { return channel.states + here(); }
  /// The state at `peer` of its messages with this member.
  [[nodiscard]] BEELINE_HOST_DEVICE MessageState* peer_state() const {
    return ctx.translate(channel.states + there(), peer);
  }
  /// The ring at `peer` for messages from this member.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* out_ring() const {
    return ctx.translate(channel.rings + there() * channel.depth * channel.slot_pairs, peer);
  }
  /// The ring at this member for messages from `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* in_ring() const {
    return channel.rings + here() * channel.depth * channel.slot_pairs;
  }
  /// The slot of message `sequence` in a ring.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* slot(machine::PacketPair* ring, std::uint32_t sequence) const {
    return ring + std::size_t{sequence & (channel.depth - 1)} * channel.slot_pairs;
  }
  /// Whether message `sequence` rewrites its whole slot, so that no flag in it grows too old (device/packets.hpp).
  [[nodiscard]] BEELINE_HOST_DEVICE bool rewrites_slot(std::uint32_t sequence) const {
    return (sequence & (packet_sweep_period - 1)) < channel.depth;
  }
  /// Whether the receiver acknowledges all messages up to message `sequence`: twice a lap.
  [[nodiscard]] BEELINE_HOST_DEVICE bool returns_credit(std::uint32_t sequence) const {
    return (sequence & (channel.depth / 2 - 1)) == 0;
  }
  /// The address at `peer` of chunk `index` of this member's message.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* out_chunk(std::uint64_t index) const {
    return ctx.translate(chunk(there(), index), peer);
  }
  /// The address at this member of chunk `index` of the message from `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* in_chunk(std::uint64_t index) const { return chunk(here(), index); }

  /// Offset of a slice in this member's slot, if `peer` reaches it directly, as members of one kind do; otherwise
  /// `no_place`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t place_of(const void* data) const {
    return ctx.kind_of(peer) == ctx.kind_of(ctx.rank) ? place_in_slot(ctx, data) : no_place;
  }
  /// The address, for this member, of offset `place` in the slot of `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* address_of(std::uint64_t place) const {
    return ctx.translate(ctx.range + (std::size_t{ctx.own_world_rank} << ctx.slot_shift) + place, peer);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t here() const { return std::size_t{session} * ctx.size + peer; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t there() const { return std::size_t{session} * ctx.size + ctx.rank; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* chunk(std::size_t link, std::uint64_t index) const {
    return channel.staging + (link * message_chunks + index % message_chunks) * channel.chunk_bytes;
  }
};

/// Number of packet pairs, after the header, that carry `bytes`.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t payload_pairs(std::uint32_t bytes) { return (bytes + 7) / 8; }

/// Waits until the receiver has room for message `sequence`. Every thread gets the same `credit`, since it is computed
/// from the sequence, not from the value that a thread has observed.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status renew_credit(const Group& group, const MessageLink& link,
                                                      std::uint32_t sequence, std::uint32_t& credit, Timeout timeout) {
  const std::uint32_t depth = link.channel.depth, needed = sequence - depth;
  const Awaited awaited{Operation::send, link.peer, sequence, needed};
  const Status status = await_consumed(group, link.ctx, awaited, timeout, &link.own_state()->consumed);
  // The receiver returns credits only at multiples of half a lap, so `needed` credits imply all credits up to the next
  // multiple.
  if (status == Status::ok) credit = (needed + depth / 2 - 1) & ~(depth / 2 - 1);
  return status;
}

/// The peer, number and header of the message that a receiver expects next.
struct ExpectedMessage {
  std::uint32_t peer, sequence;
  std::uint64_t header;
};

/// Records a message that differs from the expected message, and aborts the team, since sends and receives no longer
/// match.
BEELINE_COLD BEELINE_HOST_DEVICE inline void refuse_message(const Context& ctx, ExpectedMessage expected,
                                                            const machine::PacketPair* slot) {
  const Awaited awaited{Operation::receive, expected.peer, expected.sequence, expected.header};
  record_wait(ctx, awaited, payload_of(machine::load_packets(slot)), 0, Status::invalid_argument);
  raise_abort(ctx, ctx.own_world_rank);
}

/// Polls for the header in `slot` and for pair `pair` of the slot until both have arrived; returns early if the header
/// is not the expected header. `received` is then pair `pair`. One thread calls it.
/// Returns as `poll_until`, and invalid_argument for a header other than the expected one.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status await_message(const Context& ctx, const ExpectedMessage& expected,
                                                              const machine::PacketPair* slot, std::uint32_t pair,
                                                              Timeout timeout, machine::PacketPair& received) {
  const std::uint32_t sequence = expected.sequence;
  bool fits = true;
  const Awaited awaited{Operation::receive, expected.peer, sequence, sequence, Compare::equal};
  const Status status = poll_until(ctx, awaited, timeout, [&](std::uint64_t& observed) {
    const machine::PacketPair header = machine::load_packets(slot);
    received = machine::load_packets(slot + pair);
    observed = header.low >> 32;
    if (!has_flags(header, sequence)) return false;
    fits = is_same_message(payload_of(header), expected.header);
    return !fits || has_flags(received, sequence);
  });
  return status == Status::ok && !fits ? Status::invalid_argument : status;
}

}  // namespace beeline::detail
