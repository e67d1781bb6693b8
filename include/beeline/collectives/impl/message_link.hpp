// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Addresses of both ends of a link of a message channel, and the operations that both ends share.

#include "beeline/collectives/impl/handshake.hpp"
#include "beeline/collectives/impl/words.hpp"
#include "beeline/collectives/message_channel.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline::detail {

/// What one session moves of a message: bytes that are const at the sender.
template <class Byte>
struct MessageSlice {
  Byte* data;
  std::size_t bytes;
  std::uint64_t header;  ///< of the whole message
};

/// One session between this member and `peer`.
struct MessageLink {
  const Context& ctx;
  MessageChannel channel;
  std::uint32_t peer, session;

  /// What this member keeps of `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE MessageState* own_state() const { return channel.states + here(); }
  /// What `peer` keeps of this member.
  [[nodiscard]] BEELINE_HOST_DEVICE MessageState* peer_state() const {
    return ctx.translate(channel.states + there(), peer);
  }
  /// This member's ring at `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* out_ring() const {
    return ctx.translate(channel.rings + there() * channel.depth * channel.slot_pairs, peer);
  }
  /// The ring of `peer` here.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* in_ring() const {
    return channel.rings + here() * channel.depth * channel.slot_pairs;
  }
  /// The place of message `sequence` in a ring.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* slot(machine::PacketPair* ring, std::uint32_t sequence) const {
    return ring + std::size_t{sequence & (channel.depth - 1)} * channel.slot_pairs;
  }
  /// Whether message `sequence` rewrites its whole slot, so that no flag in it grows too old (device/packets.hpp).
  [[nodiscard]] BEELINE_HOST_DEVICE bool rewrites_slot(std::uint32_t sequence) const {
    return (sequence & (packet_sweep_period - 1)) < channel.depth;
  }
  /// Whether the receiver tells the sender that it has received the messages up to this one: twice a lap.
  [[nodiscard]] BEELINE_HOST_DEVICE bool returns_credit(std::uint32_t sequence) const {
    return (sequence & (channel.depth / 2 - 1)) == 0;
  }
  /// Where chunk `index` of this member's message goes at `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* out_chunk(std::uint64_t index) const {
    return ctx.translate(chunk(there(), index), peer);
  }
  /// Where chunk `index` of the message of `peer` comes.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* in_chunk(std::uint64_t index) const { return chunk(here(), index); }

  /// Where a slice lies in this member's slot, if `peer` reaches it directly, as members of one kind do; or `no_place`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t place_of(const void* data) const {
    return ctx.kind_of(peer) == ctx.kind_of(ctx.rank) ? place_in_slot(ctx, data) : no_place;
  }
  /// The address here of `place` in the slot of `peer`.
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

/// Packet pairs that carry `bytes` behind the header.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t payload_pairs(std::uint32_t bytes) { return (bytes + 7) / 8; }

/// Waits until the receiver has room for message `sequence`. Every thread decides alike: `credit` follows from the
/// sequence, not from what each thread happened to see.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status renew_credit(const Group& group, const MessageLink& link,
                                                      std::uint32_t sequence, std::uint32_t& credit, Timeout timeout) {
  const std::uint32_t depth = link.channel.depth, needed = sequence - depth;
  const Awaited awaited{Operation::send, link.peer, sequence, needed};
  const Status status = await_consumed(group, link.ctx, awaited, timeout, &link.own_state()->consumed);
  // Credits come back at multiples of half a lap only, so that `needed` of them means all up to the next multiple.
  if (status == Status::ok) credit = (needed + depth / 2 - 1) & ~(depth / 2 - 1);
  return status;
}

/// What a receiver expects of the next message of `link.peer`.
struct ExpectedMessage {
  std::uint32_t peer, sequence;
  std::uint64_t header;
};

/// Records a message that is not the one that is expected, and aborts the team: its messages no longer fit together.
BEELINE_COLD BEELINE_HOST_DEVICE inline void refuse_message(const Context& ctx, ExpectedMessage expected,
                                                            const machine::PacketPair* slot) {
  const Awaited awaited{Operation::receive, expected.peer, expected.sequence, expected.header};
  record_wait(ctx, awaited, payload_of(machine::load_packets(slot)), 0, Status::invalid_argument);
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
