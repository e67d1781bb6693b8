// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Posts to verbs-style rings and polls of completion queues, for the calls of verbs.hpp.

#include <cstddef>
#include <cstdint>

#include "beeline/control/impl/direct_access.hpp"
#include "beeline/control/verbs_request.hpp"
#include "beeline/device/impl/route.hpp"

namespace beeline::detail {

[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_atomic(const VerbsRequest& request) {
  return request.opcode == VerbsOpcode::fetch_add || request.opcode == VerbsOpcode::compare_swap;
}
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t request_bytes(const VerbsRequest& request) {
  if (request.payload != nullptr) return request.payload_bytes;
  if (is_atomic(request)) return sizeof(std::uint64_t);
  std::uint32_t sum = 0;
  BEELINE_UNROLL
  for (std::uint32_t i = 0; i < max_verbs_segments; ++i) sum += i < request.segments ? request.local[i].bytes : 0;
  return sum;
}
/// Whether a request may be written into a ring: the ring takes its opcode, and its memory at the peer, if it names
/// any, has as many bytes as its local memory.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_valid(const VerbsRequest& request, bool receives) {
  const VerbsOpcode opcode = request.opcode;
  if (opcode == VerbsOpcode::none || opcode > VerbsOpcode::receive || (opcode == VerbsOpcode::receive) != receives)
    return false;
  const bool has_target = opcode != VerbsOpcode::send && !receives;
  if (has_target && request.remote.bytes != request_bytes(request)) return false;
  if (request.payload != nullptr)
    return request.payload_bytes <= max_verbs_payload && request.segments == 0 && !receives && !is_atomic(request) &&
           opcode != VerbsOpcode::read;
  return request.segments <= max_verbs_segments && request.payload_bytes == 0;
}

/// One ring of a queue pair, for its poster.
template <VerbsSteps steps, class Access>
class VerbsPoster {
 public:
  BEELINE_HOST_DEVICE VerbsPoster(const VerbsQueuesView& queues, std::uint32_t pair, bool receives)
      : queues_(queues), pair_(pair), posted_(queues.posted[pair]), doorbells_(queues.doorbells[pair]),
        receives_(receives), ring_((receives ? queues.receives : queues.sends) + std::size_t{pair} * queues.depth) {}

  template <class Group>
  BEELINE_HOST_DEVICE Status post(const Group& group, const VerbsRequest& request, bool rings) const {
    if (steps.checks && pair_ >= queues_.pairs) return Status::invalid_argument;
    group.sync();
    const std::uint64_t number = receives_ ? posted_.receives : posted_.sends;
    if constexpr (steps.checks) {
      if (!is_valid(request, receives_)) return Status::invalid_argument;
      // One entry stays free, for the stamp.
      if (number - (receives_ ? posted_.receives_done : posted_.sends_done) >= queues_.depth - 1)
        return Status::no_resource;
    }
    write(group, request, number);
    group.sync();
    if (group.thread_rank() != 0) return Status::ok;
    (receives_ ? posted_.receives : posted_.sends) = number + 1;
    if (rings) publish(number + 1);
    return Status::ok;
  }

  template <class Group>
  BEELINE_HOST_DEVICE Status ring(const Group& group) const {
    if (pair_ >= queues_.pairs) return Status::invalid_argument;
    group.sync();
    if (group.thread_rank() == 0) publish(posted_.sends);
    return Status::ok;
  }

 private:
  BEELINE_HOST_DEVICE void publish(std::uint64_t count) const {
    // The sender's engine looks at receives when it needs one.
    if (receives_) return Access::store_released(doorbells_.receive.value, big_endian(count));
    if (queues_.wanted != nullptr)
      Access::store_released_on_device(doorbells_.send.value, big_endian(count));
    else
      Access::store_released(doorbells_.send.value, big_endian(count));
    wake_adapter<Access>(doorbells_.asleep.value, queues_.wanted);
  }

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t owner_opcode(const VerbsRequest& request,
                                                               std::uint64_t number) const {
    return owner_of_lap(number, queues_.depth) << 31 | static_cast<std::uint32_t>(request.opcode);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t control(const VerbsRequest& request) {
    const std::uint32_t flags =
        (request.signaled ? verbs_signaled : 0u) | (request.payload != nullptr ? verbs_inline : 0u);
    return flags << 24 | std::uint32_t{request.segments} << 16 | request.payload_bytes;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* entry(std::uint64_t number) const {
    return reinterpret_cast<std::byte*>(&ring_[number & (queues_.depth - 1)]);
  }

  template <class Group>
  BEELINE_HOST_DEVICE void write(const Group& group, const VerbsRequest& request, std::uint64_t number) const {
    if constexpr (steps.by_group)
      write_words(group, entry(number), request, number);
    else if (group.thread_rank() == 0)
      write_fields(entry(number), request, number);
    if (request.payload != nullptr) write_payload(group, entry(number) + offsetof(VerbsRequestEntry, local), request);
    if (steps.stamps && group.thread_rank() == 0) Access::store(entry(number + 1), verbs_stamp);
  }

  template <class Group>
  BEELINE_HOST_DEVICE static void write_payload(const Group& group, std::byte* to, const VerbsRequest& request) {
    const auto* const from = static_cast<const std::byte*>(request.payload);
    if (request.payload_bytes == sizeof(std::uint64_t) && reinterpret_cast<std::uintptr_t>(from) % 8 == 0) {
      if (group.thread_rank() == 0) Access::store(to, machine::load_as<std::uint64_t>(from));
      return;
    }
    for (unsigned i = group.thread_rank(); i < request.payload_bytes && i < max_verbs_payload; i += group.size())
      Access::store(to + i, from[i]);
  }

  /// A word of a key and a length; `key_first`: the key is its first half.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t key_word(VerbsKey key, std::uint32_t bytes, bool key_first) {
    if constexpr (steps.preswapped) {
      const std::uint32_t other = big_endian(bytes);
      return key_first ? joined(other, key.big_endian) : joined(key.big_endian, other);
    } else {
      return big_endian(key_first ? joined(key.value, bytes) : joined(bytes, key.value));
    }
  }

  /// Every thread makes the words in registers; thread i stores words i, i + size, ...
  template <class Group>
  BEELINE_HOST_DEVICE void write_words(const Group& group, std::byte* to, const VerbsRequest& request,
                                       std::uint64_t number) const {
    const auto put = [&](unsigned word, std::uint64_t value) {
      if (group.size() == 1 || word % group.size() == group.thread_rank()) Access::store(to + 8 * word, value);
    };
    put(0, big_endian(joined(owner_opcode(request, number), control(request))));
    put(1, big_endian(joined(static_cast<std::uint32_t>(number), request.immediate)));
    put(2, big_endian(request.remote.address));
    put(3, key_word(request.remote.key, request_bytes(request), true));
    if (request.payload != nullptr) return;
    if (is_atomic(request)) {
      put(4, big_endian(request.operand));
      put(5, big_endian(request.expected));
      return;
    }
    BEELINE_UNROLL
    for (unsigned i = 0; i < max_verbs_segments; ++i) {
      if (i >= request.segments) break;
      put(4 + 2 * i, key_word(request.local[i].key, request.local[i].bytes, false));
      put(5 + 2 * i, big_endian(request.local[i].address));
    }
  }

  BEELINE_HOST_DEVICE void write_fields(std::byte* to, const VerbsRequest& request, std::uint64_t number) const {
    const auto put = [&](std::size_t offset, std::uint32_t value) { Access::store(to + offset, big_endian(value)); };
    const auto put_two = [&](std::size_t offset, std::uint64_t value) {
      put(offset, static_cast<std::uint32_t>(value >> 32));
      put(offset + 4, static_cast<std::uint32_t>(value));
    };
    const auto put_key = [&](std::size_t offset, VerbsKey key) {
      Access::store(to + offset, steps.preswapped ? key.big_endian : big_endian(key.value));
    };
    put(0, owner_opcode(request, number));
    put(4, control(request));
    put(8, static_cast<std::uint32_t>(number));
    put(12, request.immediate);
    put_two(16, request.remote.address);
    put_key(24, request.remote.key);
    put(28, request_bytes(request));
    if (request.payload != nullptr) return;
    if (is_atomic(request)) {
      put_two(32, request.operand);
      put_two(40, request.expected);
      return;
    }
    for (std::size_t i = 0; i < max_verbs_segments && i < request.segments; ++i) {
      put(32 + 16 * i, request.local[i].bytes);
      put_key(36 + 16 * i, request.local[i].key);
      put_two(40 + 16 * i, request.local[i].address);
    }
  }

  const VerbsQueuesView& queues_;
  const std::uint32_t pair_;
  VerbsPosted& posted_;
  VerbsDoorbells& doorbells_;
  const bool receives_;
  VerbsRequestEntry* const ring_;
};

/// A completion queue, for its poller.
template <VerbsSteps steps, class Access>
class VerbsPoller {
 public:
  BEELINE_HOST_DEVICE VerbsPoller(const VerbsQueuesView& queues, std::uint32_t completion_queue)
      : queues_(queues), index_(completion_queue), polled_(queues.polled[completion_queue]),
        ring_(queues.completions + std::size_t{completion_queue} * queues.completion_depth) {}

  template <class Group>
  BEELINE_HOST_DEVICE Status poll(const Group& group, VerbsCompletion& completion) const {
    if (!is_there()) return Status::invalid_argument;
    group.sync();
    const std::uint64_t last = group.thread_rank() == 0 ? last_word(polled_.next) : 0;
    if (!group.any(group.thread_rank() == 0 && is_new(last, polled_.next))) return Status::in_progress;
    take(group, last, completion);
    return Status::ok;
  }
  /// As `poll`, but waits until there is a completion.
  template <class Group>
  BEELINE_HOST_DEVICE Status wait(const Group& group, const Context& ctx, Timeout timeout,
                                  VerbsCompletion& completion) const {
    std::uint64_t last = 0;
    const Status status = wait(group, ctx, timeout, last);
    if (status == Status::ok) take(group, last, completion);
    return status;
  }

  /// Whether there is a completion. One thread calls it.
  [[nodiscard]] BEELINE_HOST_DEVICE bool has_next() const { return is_new(last_word(polled_.next), polled_.next); }
  /// Waits until there is a completion.
  template <class Group>
  BEELINE_HOST_DEVICE Status wait(const Group& group, const Context& ctx, Timeout timeout) const {
    std::uint64_t last = 0;
    return wait(group, ctx, timeout, last);
  }

 private:
  ///   last  becomes the last word of the completion, on the group's first thread
  template <class Group>
  BEELINE_HOST_DEVICE Status wait(const Group& group, const Context& ctx, Timeout timeout, std::uint64_t& last) const {
    if (!is_there()) return Status::invalid_argument;
    group.sync();
    Status status = Status::ok;
    const std::uint64_t number = polled_.next;
    const auto has = [&last, at = entry(number) + 24, owner = owner_of_lap(number, queues_.completion_depth)] {
      return (last = Access::load_acquired(at)) >> 56 == owner;
    };
    if (group.thread_rank() == 0 && !has()) status = await_engine(ctx, {true, timeout}, has);
    if (status != Status::ok && status != Status::timeout) {
      // Pair i has completion queue i modulo the number of completion queues.
      const std::uint32_t peer = queues_.posted[index_].peer;
      status = give_up_on_engine(ctx, {Operation::flush, Verb::put, 0, 0, 0, peer}, number + 1, number, status);
    }
    return agree(group, status);
  }
  /// Takes the next completion, which has arrived.
  template <class Group>
  BEELINE_HOST_DEVICE void take(const Group& group, std::uint64_t last, VerbsCompletion& completion) const {
    const std::uint64_t number = polled_.next;
    const std::byte* const from = entry(number);
    if constexpr (!steps.checks)
      read_result(from, group.size() == 1 ? last : Access::template load<std::uint64_t>(from + 24), completion);
    else if constexpr (steps.by_group)
      read_words(from, completion);
    else
      read_fields(from, completion);
    group.sync();
    if (group.thread_rank() != 0) return;
    polled_.next = number + 1;
    if (number + 1 - polled_.published >= queues_.completion_lag) {
      polled_.published = number + 1;
      Access::store_released(queues_.words[index_].consumed.value, big_endian(number + 1));
    }
    if constexpr (steps.checks) free_entries(completion);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_there() const {
    return !steps.checks || index_ < queues_.completion_queues;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* entry(std::uint64_t number) const {
    return reinterpret_cast<std::byte*>(&ring_[number & (queues_.completion_depth - 1)]);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t last_word(std::uint64_t number) const {
    return Access::load_acquired(entry(number) + 24);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_new(std::uint64_t last, std::uint64_t number) const {
    return (last >> 56) == owner_of_lap(number, queues_.completion_depth);
  }
  /// The result of a successful request: from the last word, and, if the opcode has more results, from the other words.
  BEELINE_HOST_DEVICE static void read_result(const std::byte* from, std::uint64_t last, VerbsCompletion& completion) {
    const std::uint64_t word = big_endian(last);
    const auto opcode = static_cast<VerbsOpcode>(word >> 56);
    const bool is_plain = opcode == VerbsOpcode::write || opcode == VerbsOpcode::read || opcode == VerbsOpcode::send;
    completion = {};
    completion.opcode = opcode;
    if (!is_plain || (word >> 48 & 0xffu) != 0) read_words(from, completion);
  }

  BEELINE_HOST_DEVICE static void read_words(const std::byte* from, VerbsCompletion& completion) {
    std::uint64_t words[4];
    BEELINE_UNROLL
    for (int i = 0; i < 4; ++i) words[i] = big_endian(Access::template load<std::uint64_t>(from + 8 * i));
    completion = {static_cast<std::uint32_t>(words[0] >> 32),
                  static_cast<std::uint32_t>(words[0]),
                  static_cast<VerbsOpcode>(words[3] >> 56),
                  static_cast<VerbsStatus>(words[3] >> 48 & 0xffu),
                  (words[3] >> 40 & 0xffu) != 0,
                  static_cast<std::uint32_t>(words[2]),
                  static_cast<std::uint32_t>(words[2] >> 32),
                  words[1]};
  }
  BEELINE_HOST_DEVICE static void read_fields(const std::byte* from, VerbsCompletion& completion) {
    const auto get = [&](int offset) { return big_endian(Access::template load<std::uint32_t>(from + offset)); };
    const auto byte = [&](int offset) { return Access::template load<std::uint8_t>(from + offset); };
    completion.pair = get(0), completion.index = get(4);
    completion.value = joined(get(8), get(12));
    completion.immediate = get(16), completion.bytes = get(20);
    completion.opcode = static_cast<VerbsOpcode>(byte(24)), completion.status = static_cast<VerbsStatus>(byte(25));
    completion.is_receive = byte(26) != 0;
  }

  /// Finds the queue pair of a completion, and frees its ring's entries up to the completed request. Entries of
  /// requests before a reset were freed by `VerbsQueues::reset`.
  BEELINE_HOST_DEVICE void free_entries(const VerbsCompletion& completion) const {
    for (std::uint32_t pair = index_; pair < queues_.pairs; pair += queues_.completion_queues) {
      VerbsPosted& posted = queues_.posted[pair];
      if (posted.number != completion.pair) continue;
      std::uint64_t& done = completion.is_receive ? posted.receives_done : posted.sends_done;
      const std::uint32_t more = completion.index + 1 - static_cast<std::uint32_t>(done);
      if (static_cast<std::int32_t>(more) > 0) done += more;
      return;
    }
  }

  const VerbsQueuesView& queues_;
  const std::uint32_t index_;
  VerbsPolled& polled_;
  VerbsCompletionEntry* const ring_;
};

}  // namespace beeline::detail
