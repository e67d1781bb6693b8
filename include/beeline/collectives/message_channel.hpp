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

namespace detail {
struct PairChannel;
}  // namespace detail

/// A member's progress in one direction of the messages with one peer on one session. Kept between calls, and after a
/// time-out.
struct alignas(64) MessageProgress {
  std::uint32_t sequence;        ///< number of the last message that was sent or received completely; wraps
  std::uint32_t credit;          ///< of a sender: `consumed` when last read
  std::uint32_t handshakes;      ///< number of rendezvous messages that have begun
  std::uint32_t is_in_progress;  ///< whether the last rendezvous message is in progress
  std::uint64_t chunks;          ///< total number of chunks of all rendezvous messages
  std::uint64_t done;            ///< finished chunks of the message in progress; bytes, if `across` carries it
};

/// One member's state of the messages with one peer on one session.
struct MessageState {
  MessageProgress out, in;                    ///< used by this member only
  alignas(64) std::uint32_t consumed;         ///< written by the peer: number of the last message that it has received
                                              ///< from this member
  alignas(16) machine::PacketPair answer[2];  ///< written by the peer: its address for a slice, by parity of handshakes
  std::uint64_t taken;                        ///< written by the peer: number of this member's chunks that the peer has
                                              ///< read
  alignas(64) std::uint64_t delivered;        ///< written by the peer: number of chunks that the peer has stored at
                                              ///< this member
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
  std::uint64_t eager_end;    ///< longer by 1 than the longest message in bytes that is sent eagerly; 0: none is
  std::uint64_t chunk_bytes;  ///< a multiple of 256
  /// [sessions] in a team with members on several nodes, instead of rings and staging; otherwise nullptr
  const detail::PairChannel* across;

  /// Bytes of the longest slice of an eager message: a multiple of 16.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t slot_bytes() const { return std::size_t{8} * (slot_pairs - 1); }
  /// Whether a message is sent eagerly, without a handshake. Either all slices of a message are eager, or none is.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_eager(std::size_t bytes, std::uint32_t slices) const {
    return bytes < eager_end && bytes <= slices * slot_bytes();
  }
};
static_assert(std::is_trivially_copyable_v<MessageChannel>);

/// The largest tag of a message.
inline constexpr std::uint32_t most_message_tag = (1u << 11) - 1;

namespace detail {

/// The header that a sender writes and a receiver expects: the message's length, its number of slices, its tag, and the
/// type of its elements, from the low bits on.
///   elements  type as returned by `message_elements`; 0: unknown
inline constexpr unsigned header_length_bits = 38, header_slice_bits = 11, header_tag_bits = 11, header_type_bits = 4;
static_assert(header_length_bits + header_slice_bits + header_tag_bits + header_type_bits == 64);
static_assert(most_message_tag >> header_tag_bits == 0);
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t message_header(std::size_t bytes, std::uint32_t slices,
                                                                         std::uint32_t tag = 0,
                                                                         std::uint32_t elements = 0) {
  return std::uint64_t{bytes} | std::uint64_t{slices} << header_length_bits |
         std::uint64_t{tag} << (header_length_bits + header_slice_bits) |
         std::uint64_t{elements} << (64 - header_type_bits);
}
/// Number of an element type in headers. `uint8` counts as unknown (0), since bytes may be elements of any type.
[[nodiscard]] constexpr std::uint32_t message_elements(ElementType type) {
  return type == ElementType::uint8 ? 0 : static_cast<std::uint32_t>(type) + 1;
}
static_assert(element_types < 1 << header_type_bits, "a header has four bits for the type");
/// Whether two headers describe the same message. An unknown type matches every type.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_same_message(std::uint64_t one, std::uint64_t other) {
  constexpr std::uint64_t types = ~std::uint64_t{0} << (64 - header_type_bits);
  return one == other || (((one ^ other) & ~types) == 0 && ((one & types) == 0 || (other & types) == 0));
}
inline constexpr std::uint64_t most_message_bytes = (std::uint64_t{1} << header_length_bits) - 1;
inline constexpr std::uint64_t most_message_slices = 1024;
static_assert(most_message_slices >> header_slice_bits == 0);
[[nodiscard]] constexpr std::uint64_t bytes_in_header(std::uint64_t header) { return header & most_message_bytes; }
[[nodiscard]] constexpr std::uint64_t slices_in_header(std::uint64_t header) {
  return header >> header_length_bits & ((1u << header_slice_bits) - 1);
}
[[nodiscard]] constexpr std::uint64_t tag_in_header(std::uint64_t header) {
  return header >> (header_length_bits + header_slice_bits) & ((1u << header_tag_bits) - 1);
}
/// The name of the elements' type; nullptr if it is unknown.
[[nodiscard]] constexpr const char* type_in_header(std::uint64_t header) {
  constexpr unsigned shift = 64 - header_type_bits;
  return header >> shift == 0 ? nullptr : name(static_cast<ElementType>((header >> shift) - 1));
}

}  // namespace detail

}  // namespace beeline
