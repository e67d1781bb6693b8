// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What kernels need for messages from one member of a team to another, made by `Messages` and passed by value.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/collectives/impl/handshake.hpp"
#include "beeline/collectives/impl/words.hpp"
#include "beeline/device/packets.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline {

/// How far a member has come with the messages that it sends to one peer on one lane, or receives from it. Kept from
/// call to call, and over a time-out.
struct alignas(64) MessageProgress {
  std::uint32_t sequence;    ///< of the last message that was sent or received whole; wraps
  std::uint32_t credit;      ///< of a sender: messages known to be received, as last looked up
  std::uint32_t meetings;    ///< messages by rendezvous that have begun
  std::uint32_t is_meeting;  ///< whether the last of them is under way
  std::uint64_t chunks;      ///< that all messages by rendezvous were moved in
  std::uint64_t done;        ///< chunks of the message that is under way
};

/// One member's ends of the messages with one peer on one lane.
struct MessageState {
  MessageProgress out, in;                     ///< this member's alone
  alignas(64) std::uint32_t consumed;          ///< written by the peer: messages of mine that it has received
  alignas(16) machine::PacketPair meeting[2];  ///< by the peer: where my slice is to lie at it, by parity of meetings
  std::uint64_t taken;                         ///< by the peer: chunks of mine that it has taken
  alignas(64) std::uint64_t delivered;         ///< by the peer: chunks of its own that lie here
};
static_assert(sizeof(MessageState) == 256);

/// Chunks of a sender that fit into a receiver's memory at a time.
inline constexpr std::uint32_t message_chunks = 4;

/// A channel for messages. It has *lanes*: block b of the sender's part of a grid and block b of the receiver's move
/// slice b of a message on lane b. Between two members messages keep their order on each lane; a message goes over
/// the first lanes, as many as it has slices.
struct MessageChannel {
  MessageState* states;        ///< [lanes, members]
  machine::PacketPair* rings;  ///< [lanes, members, depth, slot_pairs] at the receiver, by sender
  std::byte* staging;          ///< [lanes, members, message_chunks, chunk_bytes] at the receiver, by sender
  std::uint32_t lanes;
  std::uint32_t depth;        ///< messages under way on a lane, a power of two, at least 2
  std::uint32_t slot_pairs;   ///< one for what the sender says of the message, and 8 bytes of payload each
  std::uint64_t eager_bytes;  ///< longest message that is sent without asking the receiver
  std::uint64_t chunk_bytes;  ///< a multiple of 256

  /// Longest slice of a message that is sent without asking the receiver.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t slot_bytes() const { return std::size_t{8} * (slot_pairs - 1); }
};
static_assert(std::is_trivially_copyable_v<MessageChannel>);

namespace detail {

/// What a sender says of a message, and a receiver expects: its length and the slices that it goes in.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t message_header(std::size_t bytes, std::uint32_t slices) {
  return std::uint64_t{bytes} | std::uint64_t{slices} << 48;
}
inline constexpr std::uint64_t most_message_bytes = (std::uint64_t{1} << 48) - 1;
[[nodiscard]] constexpr std::uint64_t bytes_in_header(std::uint64_t header) { return header & most_message_bytes; }
[[nodiscard]] constexpr std::uint64_t slices_in_header(std::uint64_t header) { return header >> 48; }

/// What one lane moves of a message.
template <class Byte>
struct MessageSlice {
  Byte* data;
  std::size_t bytes;
  std::uint64_t header;  ///< of the whole message
  bool is_eager;         ///< alike for all slices, at both ends
};

template <class Byte>
[[nodiscard]] BEELINE_HOST_DEVICE MessageSlice<Byte> slice_of(const MessageChannel& channel, Byte* data,
                                                              std::size_t bytes, std::uint32_t index,
                                                              std::uint32_t slices) {
  const Range mine = part_of(bytes, slices, index, 16), longest = part_of(bytes, slices, 0, 16);
  return {data + mine.first, mine.count, message_header(bytes, slices),
          bytes <= channel.eager_bytes && longest.count <= channel.slot_bytes()};
}

/// The ends of one lane between this member and `peer`.
struct MessageLink {
  std::uint32_t peer, lane;

  /// What this member keeps of `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE MessageState* own_state(const Context& ctx, const MessageChannel& channel) const {
    return channel.states + std::size_t{lane} * ctx.size + peer;
  }
  /// What `peer` keeps of this member.
  [[nodiscard]] BEELINE_HOST_DEVICE MessageState* peer_state(const Context& ctx, const MessageChannel& channel) const {
    return ctx.translate(channel.states + std::size_t{lane} * ctx.size + ctx.rank, peer);
  }
  /// This member's ring at `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* out_ring(const Context& ctx,
                                                                  const MessageChannel& channel) const {
    return ctx.translate(channel.rings + (std::size_t{lane} * ctx.size + ctx.rank) * channel.depth * channel.slot_pairs,
                         peer);
  }
  /// The ring of `peer` here.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* in_ring(const Context& ctx,
                                                                 const MessageChannel& channel) const {
    return channel.rings + (std::size_t{lane} * ctx.size + peer) * channel.depth * channel.slot_pairs;
  }
  /// Where chunk `index` of this member's message goes at `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* out_chunk(const Context& ctx, const MessageChannel& channel,
                                                         std::uint64_t index) const {
    return ctx.translate(chunk(channel, std::size_t{lane} * ctx.size + ctx.rank, index), peer);
  }
  /// Where chunk `index` of the message of `peer` comes.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* in_chunk(const Context& ctx, const MessageChannel& channel,
                                                        std::uint64_t index) const {
    return chunk(channel, std::size_t{lane} * ctx.size + peer, index);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE static std::byte* chunk(const MessageChannel& channel, std::size_t link,
                                                            std::uint64_t index) {
    return channel.staging + (link * message_chunks + index % message_chunks) * channel.chunk_bytes;
  }
};

/// The place of message `sequence` in a ring.
[[nodiscard]] BEELINE_HOST_DEVICE inline machine::PacketPair* message_slot(machine::PacketPair* ring,
                                                                           std::uint32_t sequence, std::uint32_t depth,
                                                                           std::uint32_t slot_pairs) {
  return ring + std::size_t{sequence & (depth - 1)} * slot_pairs;
}
/// Whether message `sequence` rewrites its whole slot, so that no flag in it grows too old (device/packets.hpp).
[[nodiscard]] BEELINE_HOST_DEVICE inline bool rewrites_slot(std::uint32_t sequence, std::uint32_t depth) {
  return (sequence & (packet_sweep_period - 1)) < depth;
}
/// Packet pairs that carry `bytes` behind the header.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t payload_pairs(std::uint32_t bytes) { return (bytes + 7) / 8; }
/// Of them, those whose 8 bytes are one aligned word in memory.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t whole_pairs(const std::byte* memory, std::uint32_t bytes) {
  return (reinterpret_cast<std::uintptr_t>(memory) & 7u) == 0 ? bytes / 8 : 0;
}
/// Messages after which a receiver tells the sender that it has received them.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_half_lap(std::uint32_t sequence, std::uint32_t depth) {
  return (sequence & (depth / 2 - 1)) == 0;
}

/// Where a slice lies in this member's slot, if `peer` reaches it directly, as members of one kind do; or `no_place`.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t place_for(const Context& ctx, std::uint32_t peer,
                                                                 const void* data) {
  return ctx.kind_of(peer) == ctx.kind_of(ctx.rank) ? place_in_slot(ctx, data) : no_place;
}
/// The address here of `place` in the slot of `peer`.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::byte* address_of(const Context& ctx, std::uint32_t peer,
                                                               std::uint64_t place) {
  return ctx.translate(ctx.range + (std::size_t{ctx.own_world_rank} << ctx.slot_shift) + place, peer);
}

/// Makes what came before the store of a pair that this thread has seen visible to it: a load is quicker than a fence.
BEELINE_HOST_DEVICE inline void acquire_pair(const machine::PacketPair* seen) {
  static_cast<void>(
      SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(seen->low)).load(cuda::memory_order_acquire));
}

/// Waits until this member's chunk counter `word` has reached `count`; then what it announced is visible to the group.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status await_chunks(const Group& group, const Context& ctx, std::uint64_t* word,
                                                      const Awaited& awaited, Timeout timeout) {
  Status status = Status::ok;
  const std::uint64_t count = awaited.expected;
  if (group.thread_rank() == 0)
    status = await_word(ctx, awaited, timeout, SystemAtomic<std::uint64_t>(*word), Order::memory,
                        [count](std::uint64_t observed) { return observed >= count; });
  return agree(group, status);
}

/// Sets a chunk counter of the peer's, after what the group did before. By the last thread: the first one polls.
template <class Group>
BEELINE_HOST_DEVICE void tell_chunks(const Group& group, std::uint64_t* word, std::uint64_t count) {
  group.sync();
  if (group.thread_rank() + 1 == group.size())
    SystemAtomic<std::uint64_t>(*word).store(count, cuda::memory_order_release);
}

}  // namespace detail

}  // namespace beeline
