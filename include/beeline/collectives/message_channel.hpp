// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What kernels need for messages from one member of a team to another, made by `Messages` and passed by value.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/device/packets.hpp"

namespace beeline {

/// How far a member has come with the messages that it sends to one peer on one session, or receives from it. Kept from
/// call to call, and over a time-out.
struct alignas(64) MessageProgress {
  std::uint32_t sequence;        ///< of the last message that was sent or received whole; wraps
  std::uint32_t credit;          ///< of a sender: messages known to be received, as last looked up
  std::uint32_t handshakes;      ///< messages by rendezvous that have begun
  std::uint32_t is_in_progress;  ///< whether the last of them is under way
  std::uint64_t chunks;          ///< that all messages by rendezvous were moved in
  std::uint64_t done;            ///< chunks of the message that is under way
};

/// One member's ends of the messages with one peer on one session.
struct MessageState {
  MessageProgress out, in;                    ///< this member's alone
  alignas(64) std::uint32_t consumed;         ///< written by the peer: messages of mine that it has received
  alignas(16) machine::PacketPair answer[2];  ///< by the peer: where my slice is to lie at it, by parity of handshakes
  std::uint64_t taken;                        ///< by the peer: chunks of mine that it has taken
  alignas(64) std::uint64_t delivered;        ///< by the peer: chunks of its own that lie here
};
static_assert(sizeof(MessageState) == 256);

/// Chunks of a sender that fit into a receiver's memory at a time.
inline constexpr std::uint32_t message_chunks = 4;

/// A channel for messages. It has *sessions*: block b of the sender's grid and block b of the receiver's move slice b
/// of a message on session b. Between two members messages keep their order on each session; a message goes over the
/// first sessions, as many as it has slices.
struct MessageChannel {
  MessageState* states;        ///< [sessions, members]
  machine::PacketPair* rings;  ///< [sessions, members, depth, slot_pairs] at the receiver, by sender
  std::byte* staging;          ///< [sessions, members, message_chunks, chunk_bytes] at the receiver, by sender
  std::uint32_t sessions;
  std::uint32_t depth;        ///< messages under way on a session, a power of two, at least 2
  std::uint32_t slot_pairs;   ///< one for what the sender says of the message, and 8 bytes of payload each
  std::uint64_t eager_bytes;  ///< longest message that is sent without asking the receiver
  std::uint64_t chunk_bytes;  ///< a multiple of 256

  /// Longest slice of a message that is sent without asking the receiver: a multiple of 16.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t slot_bytes() const { return std::size_t{8} * (slot_pairs - 1); }
  /// Whether a message is sent without asking the receiver. All its slices are, or none.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_eager(std::size_t bytes, std::uint32_t slices) const {
    return bytes <= eager_bytes && bytes <= slices * slot_bytes();
  }
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

}  // namespace detail

}  // namespace beeline
