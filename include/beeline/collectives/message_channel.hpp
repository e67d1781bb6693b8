// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The channel that kernels need for messages between members of a team. `Messages` makes it; kernels take it by value.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/collectives/elements.hpp"
#include "beeline/device/packets.hpp"

namespace beeline {

/// A member's progress in one direction of the messages with one peer on one session. Kept from call to call, and over
/// a time-out.
struct alignas(64) MessageProgress {
  std::uint32_t sequence;        ///< of the last message that was sent or received completely; wraps
  std::uint32_t credit;          ///< of a sender: messages received by the peer, when last read
  std::uint32_t handshakes;      ///< rendezvous messages that have begun
  std::uint32_t is_in_progress;  ///< whether the last of these is in progress
  std::uint64_t chunks;          ///< total number of chunks of all rendezvous messages
  std::uint64_t done;            ///< finished chunks of the message in progress
};

/// One member's state of the messages with one peer on one session.
struct MessageState {
  MessageProgress out, in;                    ///< used by this member only
  alignas(64) std::uint32_t consumed;         ///< written by the peer: messages that it has received from this member
  alignas(16) machine::PacketPair answer[2];  ///< by the peer: its address for a slice, by parity of handshakes
  std::uint64_t taken;                        ///< by the peer: chunks of this member that it has taken
  alignas(64) std::uint64_t delivered;        ///< by the peer: chunks that it has stored at this member
};
static_assert(sizeof(MessageState) == 256);

/// Chunks of one sender that a receiver's staging memory holds.
inline constexpr std::uint32_t message_chunks = 4;

/// A channel for messages. It has *sessions*: block b of the sender's grid and block b of the receiver's grid move
/// slice b of a message on session b. A message with n slices uses the first n sessions. On each session, messages
/// between two members keep their order.
struct MessageChannel {
  MessageState* states;        ///< [sessions, members]
  machine::PacketPair* rings;  ///< [sessions, members, depth, slot_pairs] at the receiver, by sender
  std::byte* staging;          ///< [sessions, members, message_chunks, chunk_bytes] at the receiver, by sender
  std::uint32_t sessions;
  std::uint32_t depth;        ///< messages in flight on a session at most: a power of two, at least 2
  std::uint32_t slot_pairs;   ///< packets of a slot: one for the header, the others with 8 bytes of payload each
  std::uint64_t eager_bytes;  ///< longest message in bytes that is sent eagerly
  std::uint64_t chunk_bytes;  ///< a multiple of 256

  /// Bytes of the longest slice of an eager message: a multiple of 16.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t slot_bytes() const { return std::size_t{8} * (slot_pairs - 1); }
  /// Whether a message is sent eagerly, without a handshake. That holds for all of its slices, or for none.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_eager(std::size_t bytes, std::uint32_t slices) const {
    return bytes <= eager_bytes && bytes <= slices * slot_bytes();
  }
};
static_assert(std::is_trivially_copyable_v<MessageChannel>);

namespace detail {

/// The header that a sender writes and a receiver expects: the message's length, its number of slices, and the type of
/// its elements.
///   elements  as of `message_elements`; 0: unknown
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t message_header(std::size_t bytes, std::uint32_t slices,
                                                                         std::uint32_t elements = 0) {
  return std::uint64_t{bytes} | std::uint64_t{slices} << 48 | std::uint64_t{elements} << 60;
}
/// Bytes may be elements of any type: their type counts as unknown.
[[nodiscard]] constexpr std::uint32_t message_elements(ElementType type) {
  return type == ElementType::uint8 ? 0 : static_cast<std::uint32_t>(type) + 1;
}
static_assert(element_types < 16, "a header has four bits for the type");
/// Whether two headers are of one message. A type that one side does not know fits any.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_same_message(std::uint64_t one, std::uint64_t other) {
  constexpr std::uint64_t types = std::uint64_t{15} << 60;
  return one == other || (((one ^ other) & ~types) == 0 && ((one & types) == 0 || (other & types) == 0));
}
inline constexpr std::uint64_t most_message_bytes = (std::uint64_t{1} << 48) - 1;
[[nodiscard]] constexpr std::uint64_t bytes_in_header(std::uint64_t header) { return header & most_message_bytes; }
[[nodiscard]] constexpr std::uint64_t slices_in_header(std::uint64_t header) { return header >> 48 & 0xfffu; }
/// The name of the elements' type; nullptr: unknown.
[[nodiscard]] constexpr const char* type_in_header(std::uint64_t header) {
  return header >> 60 == 0 ? nullptr : name(static_cast<ElementType>((header >> 60) - 1));
}

}  // namespace detail

}  // namespace beeline
