// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bytes of verbs-style queue pairs: work requests, completions, doorbells and memory keys, as posters, pollers and
/// engines share them (docs/adapters.md). All fields of requests, completions and doorbells are big-endian.
///
///   work request, 64 bytes                              completion, 32 bytes
///    0  owner (1 bit), opcode (31 bits)                  0  queue pair number (32)
///    4  flags (8), segments (8), payload bytes (16)      4  request index (32)
///    8  request index (32)                               8  old value of an atomic (64)
///   12  immediate (32)                                  16  immediate (32)
///   16  remote address (64)                             20  bytes (32)
///   24  remote key (32)                                 24  opcode (8)
///   28  bytes (32)                                      25  status (8)
///   32  two segments: bytes (32), key (32),             26  1: of a receive ring (8)
///       address (64); or operand (64),                  27  0 (32)
///       expected value (64); or up to 32 bytes          31  owner (8), stored last
///       of payload
///
/// The owner bit of the entry for request or completion n of a ring of depth d is 1 in the first lap of the ring, 0 in
/// the second, and so on: 1 - n / d % 2. A stamp, `verbs_stamp` in the first 4 bytes, marks an entry that holds no
/// request. An address is an offset from the start of the slot of the rank that owns the memory.
///
/// Source: seed 000, 2.4.6, figures 5.1 and 5.2.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"
#include "beeline/core/macros.hpp"

namespace beeline {

/// What a work request asks for. 0 and 255 are no opcodes, so that zeroed and stamped entries are no requests.
enum class VerbsOpcode : std::uint8_t {
  none,
  write,                 ///< RDMA write
  write_with_immediate,  ///< RDMA write that consumes a receive of the peer, whose completion has the immediate value
  send,                  ///< to the memory that a receive of the peer names
  read,                  ///< RDMA read
  fetch_add,
  compare_swap,
  receive
};

/// The result of a request, in its completion.
enum class VerbsStatus : std::uint8_t {
  ok,
  bad_opcode,
  wrong_byte_order,  ///< the request is written in little-endian order
  no_request,        ///< the doorbell was rung for an entry that is stamped or of an older lap
  bad_index,         ///< the request's index is not that of its entry
  bad_length,        ///< lengths differ, too many segments or bytes of payload, or an atomic that is not aligned
  bad_local_key,     ///< no such registered memory, or outside it
  bad_remote_key,    ///< as above, at the peer
  no_receive,        ///< the peer has posted no receive
  short_receive,     ///< the peer's receive has too little memory
  bad_receive,       ///< the peer's receive is no valid request
  refused,           ///< refused by the engine: registered memory was freed, or source and destination overlap
  doorbell_too_far,  ///< the doorbell was rung for more requests than the ring holds
  flushed,           ///< an earlier request of the queue pair failed
  completions_full,  ///< the completion queue had no entry for this completion; later ones may be lost
};

/// Bits of a request's flags.
inline constexpr std::uint8_t verbs_signaled = 1;  ///< success has a completion, too
inline constexpr std::uint8_t verbs_inline = 2;    ///< the request holds its payload

inline constexpr std::uint32_t verbs_stamp = ~std::uint32_t{0};
inline constexpr std::uint32_t verbs_owner_bit = std::uint32_t{1} << 31;
inline constexpr std::uint32_t max_verbs_segments = 2, max_verbs_payload = 32;

namespace detail {

/// From or to big-endian order. The compilers make one or two instructions of the shifts.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t big_endian(std::uint32_t value) {
  return value << 24 | (value & 0xff00u) << 8 | (value >> 8 & 0xff00u) | value >> 24;
}
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t big_endian(std::uint64_t value) {
  return std::uint64_t{big_endian(static_cast<std::uint32_t>(value))} << 32 |
         big_endian(static_cast<std::uint32_t>(value >> 32));
}
/// The word whose first 4 bytes are `first` in big-endian order.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t joined(std::uint32_t first, std::uint32_t second) {
  return std::uint64_t{first} << 32 | second;
}

/// The owner bit of entry `number` of a ring.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t owner_of_lap(std::uint64_t number, std::uint32_t depth) {
  return (number & depth) == 0 ? 1 : 0;
}

}  // namespace detail

/// An entry of a send or receive ring.
struct alignas(64) VerbsRequestEntry {
  std::uint32_t owner_opcode;
  std::uint8_t flags, segments;
  std::uint16_t payload_bytes;
  std::uint32_t index, immediate;
  std::uint64_t remote_address;
  std::uint32_t remote_key, bytes;
  struct Segment {
    std::uint32_t bytes, key;
    std::uint64_t address;
  } local[max_verbs_segments];
};
static_assert(std::is_trivially_copyable_v<VerbsRequestEntry> && sizeof(VerbsRequestEntry) == 64);
static_assert(offsetof(VerbsRequestEntry, owner_opcode) == 0 && offsetof(VerbsRequestEntry, flags) == 4);
static_assert(offsetof(VerbsRequestEntry, segments) == 5 && offsetof(VerbsRequestEntry, payload_bytes) == 6);
static_assert(offsetof(VerbsRequestEntry, index) == 8 && offsetof(VerbsRequestEntry, immediate) == 12);
static_assert(offsetof(VerbsRequestEntry, remote_address) == 16 && offsetof(VerbsRequestEntry, remote_key) == 24);
static_assert(offsetof(VerbsRequestEntry, bytes) == 28 && offsetof(VerbsRequestEntry, local) == 32);
static_assert(sizeof(VerbsRequestEntry::Segment) == 16 && offsetof(VerbsRequestEntry::Segment, key) == 4);
static_assert(offsetof(VerbsRequestEntry::Segment, address) == 8);

/// An entry of a completion queue.
struct alignas(32) VerbsCompletionEntry {
  std::uint32_t pair, index;
  std::uint64_t value;
  std::uint32_t immediate, bytes;
  std::uint8_t opcode, status, is_receive, reserved[4], owner;
};
static_assert(std::is_trivially_copyable_v<VerbsCompletionEntry> && sizeof(VerbsCompletionEntry) == 32);
static_assert(offsetof(VerbsCompletionEntry, index) == 4 && offsetof(VerbsCompletionEntry, value) == 8);
static_assert(offsetof(VerbsCompletionEntry, immediate) == 16 && offsetof(VerbsCompletionEntry, bytes) == 20);
static_assert(offsetof(VerbsCompletionEntry, opcode) == 24 && offsetof(VerbsCompletionEntry, status) == 25);
static_assert(offsetof(VerbsCompletionEntry, is_receive) == 26 && offsetof(VerbsCompletionEntry, owner) == 31);

/// Words that a queue pair's posters share with its engine, each in a cache line of its own.
struct VerbsDoorbells {
  PaddedWord send, receive;  ///< counts of posted requests, big-endian; written by posters
  PaddedWord asleep;         ///< written by the engine that serves the send ring: 0, or how to wake it
};

/// Words of a completion queue.
struct VerbsCompletionWords {
  PaddedWord produced;  ///< count of completions; engines share it
  PaddedWord consumed;  ///< count of completions that were read, big-endian; written by the poller
};

/// A key names memory that a rank has registered, by the rank and an entry of its table: rank (10 bits), entry (10),
/// generation (12, never 0).
inline constexpr std::uint32_t max_verbs_keys = 1024;
struct VerbsKeyEntry {
  std::uint32_t key;  ///< 0: the entry is free. Stored last, and cleared first
  std::uint32_t reserved;
  std::uint64_t offset, bytes;
};
static_assert(std::is_trivially_copyable_v<VerbsKeyEntry> && sizeof(VerbsKeyEntry) == 24);

namespace detail {

[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t verbs_key(std::uint32_t rank, std::uint32_t entry,
                                                                    std::uint32_t generation) {
  return rank << 22 | entry << 12 | generation;
}
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t rank_of_key(std::uint32_t key) { return key >> 22; }
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t entry_of_key(std::uint32_t key) {
  return key >> 12 & (max_verbs_keys - 1);
}
static_assert(max_ranks <= 1024 && max_verbs_keys == 1024);

}  // namespace detail

}  // namespace beeline
