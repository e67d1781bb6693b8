// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Work requests and completions of verbs-style queue pairs, and the queues as kernels see them (control/verbs.hpp).

#include <cstdint>

#include "beeline/control/impl/verbs_format.hpp"
#include "beeline/device/context.hpp"

namespace beeline {

/// The optimisation steps of seed 000, table 5.4, as a template argument of posts and polls. The default does all that
/// the interface promises; `verbs_steps` has the five rows of the table.
struct VerbsSteps {
  bool by_group = true;    ///< 1: the group's threads store and load whole words; otherwise one thread does field by
                           ///< field
  bool preswapped = true;  ///< 2: keys were brought into big-endian order when memory was registered
  bool stamps = true;      ///< the entry after a posted one is stamped; 3: it is not
  bool checks = true;      ///< parameters, overflow of the ring, and the queue pair of a completion; 4: the caller
                           ///< takes care of them. The completion of a write, read or send that succeeded then has an
                           ///< opcode and a status only, which are in one word
};
inline constexpr VerbsSteps verbs_steps[] = {{false, false, true, true},
                                             {true, false, true, true},
                                             {true, true, true, true},
                                             {true, true, false, true},
                                             {true, true, false, false}};

/// The key of registered memory, in both byte orders.
struct VerbsKey {
  std::uint32_t value = 0, big_endian = 0;
  [[nodiscard]] BEELINE_HOST_DEVICE static constexpr VerbsKey of(std::uint32_t key) {
    return {key, detail::big_endian(key)};
  }
};

/// A range of registered memory.
struct VerbsSegment {
  std::uint64_t address = 0;  ///< offset in the slot of the rank that owns the memory: see `segment_of`
  std::uint32_t bytes = 0;
  VerbsKey key{};
};

/// A range of the caller's memory, or of a peer's memory that corresponds to it.
[[nodiscard]] BEELINE_HOST_DEVICE inline VerbsSegment segment_of(const Context& ctx, const void* address,
                                                                 std::uint32_t bytes, VerbsKey key) {
  return {ctx.offset_in_slot(address), bytes, key};
}

/// A work request. The functions below make the requests of each opcode.
struct VerbsRequest {
  VerbsOpcode opcode = VerbsOpcode::none;
  bool signaled = true;  ///< has a completion also if it succeeds; errors always have one
  std::uint8_t segments = 0;
  std::uint8_t payload_bytes = 0;
  std::uint32_t immediate = 0;
  VerbsSegment remote{};
  VerbsSegment local[max_verbs_segments]{};
  std::uint64_t operand = 0, expected = 0;  ///< of atomics
  const void* payload = nullptr;            ///< bytes that travel in the request; nullptr: `local` names them
};

namespace detail {

[[nodiscard]] BEELINE_HOST_DEVICE inline VerbsRequest access_request(VerbsOpcode opcode, const VerbsSegment& remote,
                                                                     const VerbsSegment& local) {
  VerbsRequest request{.opcode = opcode, .segments = 1};
  request.remote = remote, request.local[0] = local;
  return request;
}

}  // namespace detail

[[nodiscard]] BEELINE_HOST_DEVICE inline VerbsRequest write_request(const VerbsSegment& to, const VerbsSegment& from) {
  return detail::access_request(VerbsOpcode::write, to, from);
}
/// A write whose value the peer finds in the completion of a receive.
[[nodiscard]] BEELINE_HOST_DEVICE inline VerbsRequest write_request(const VerbsSegment& to, const VerbsSegment& from,
                                                                    std::uint32_t immediate) {
  VerbsRequest request = detail::access_request(VerbsOpcode::write_with_immediate, to, from);
  request.immediate = immediate;
  return request;
}
/// A write of up to `max_verbs_payload` bytes at any address, which may be reused after the post.
[[nodiscard]] BEELINE_HOST_DEVICE inline VerbsRequest inline_write_request(const VerbsSegment& to, const void* from) {
  constexpr std::uint32_t too_many = 255;  // a value that fits into the field, and that the post refuses
  const std::uint32_t payload_bytes = to.bytes < too_many ? to.bytes : too_many;
  VerbsRequest request{.opcode = VerbsOpcode::write, .payload_bytes = static_cast<std::uint8_t>(payload_bytes)};
  request.remote = to, request.payload = from;
  return request;
}
[[nodiscard]] BEELINE_HOST_DEVICE inline VerbsRequest read_request(const VerbsSegment& from, const VerbsSegment& to) {
  return detail::access_request(VerbsOpcode::read, from, to);
}
[[nodiscard]] BEELINE_HOST_DEVICE inline VerbsRequest send_request(const VerbsSegment& from,
                                                                   std::uint32_t immediate = 0) {
  VerbsRequest request = detail::access_request(VerbsOpcode::send, {}, from);
  request.immediate = immediate;
  return request;
}
[[nodiscard]] BEELINE_HOST_DEVICE inline VerbsRequest receive_request(const VerbsSegment& to) {
  return detail::access_request(VerbsOpcode::receive, {}, to);
}
/// Adds to a word of 8 bytes; the completion has its old value.
[[nodiscard]] BEELINE_HOST_DEVICE inline VerbsRequest fetch_add_request(const VerbsSegment& word,
                                                                        std::uint64_t operand) {
  VerbsRequest request{.opcode = VerbsOpcode::fetch_add};
  request.remote = word, request.operand = operand;
  return request;
}
/// Sets a word of 8 bytes to `value` if it is `expected`; the completion has its old value.
[[nodiscard]] BEELINE_HOST_DEVICE inline VerbsRequest compare_swap_request(const VerbsSegment& word,
                                                                           std::uint64_t expected,
                                                                           std::uint64_t value) {
  VerbsRequest request{.opcode = VerbsOpcode::compare_swap};
  request.remote = word, request.operand = value, request.expected = expected;
  return request;
}

/// A completion, in the machine's byte order.
struct VerbsCompletion {
  std::uint32_t pair = 0;                  ///< number of the queue pair: `VerbsPosted::number`
  std::uint32_t index = 0;                 ///< of the request in its ring, counted from 0
  VerbsOpcode opcode = VerbsOpcode::none;  ///< none if the request was not decoded
  VerbsStatus status = VerbsStatus::ok;
  bool is_receive = false;
  std::uint32_t bytes = 0;      ///< of the request
  std::uint32_t immediate = 0;  ///< of a receive: the sender's
  std::uint64_t value = 0;      ///< of an atomic: the word's old value
};

/// State of a queue pair's posters, in their memory.
struct alignas(64) VerbsPosted {
  std::uint64_t sends, sends_done;        ///< numbers of posted requests, and of those known to be complete
  std::uint64_t receives, receives_done;  ///< as above, of the receive ring
  std::uint32_t number;                   ///< of the queue pair, unique in the team
  std::uint32_t peer;                     ///< rank of the team
};
/// State of a completion queue's poller.
struct alignas(64) VerbsPolled {
  std::uint64_t next;       ///< number of the next completion
  std::uint64_t published;  ///< completions that the engines know to be read
};

/// The queues of a `VerbsQueues` object, which kernels take by value.
struct VerbsQueuesView {
  VerbsRequestEntry *sends, *receives;  ///< [pairs][depth]
  VerbsDoorbells* doorbells;            ///< [pairs]
  VerbsPosted* posted;                  ///< [pairs]
  VerbsCompletionEntry* completions;    ///< [completion_queues][completion_depth]
  VerbsCompletionWords* words;          ///< [completion_queues]
  VerbsPolled* polled;                  ///< [completion_queues]
  std::uint32_t pairs, depth, completion_queues, completion_depth;
  std::uint32_t completion_lag;  ///< completions that may be read before `consumed` is stored, which takes a fence
  std::uint64_t* wanted;         ///< set to wake a resident engine that sleeps; nullptr: a host engine serves the rings
};

}  // namespace beeline
