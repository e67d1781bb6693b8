// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The protocol LL: data and flag travel in one 8-byte store, so that arrival needs no fence.
///
/// A pair of packets is one 16-byte access: {4 bytes of data, flag} twice. Source: NCCL's LL protocol.

#include "beeline/device/impl/words.hpp"
#include "beeline/device/wait.hpp"

namespace beeline {

namespace detail {

[[nodiscard]] BEELINE_HOST_DEVICE inline machine::PacketPair packets_of(std::uint64_t word, std::uint32_t sequence) {
  const std::uint64_t flag = std::uint64_t{sequence} << 32;
  return {(word & 0xffffffffu) | flag, (word >> 32) | flag};
}
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t payload_of(const machine::PacketPair& pair) {
  return (pair.low & 0xffffffffu) | (pair.high << 32);
}
[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_flags(const machine::PacketPair& pair, std::uint32_t sequence) {
  return static_cast<std::uint32_t>(pair.low >> 32) == sequence &&
         static_cast<std::uint32_t>(pair.high >> 32) == sequence;
}

/// A message, or the part of it in one slot.
template <class Pair, class Byte>
struct SlotMessage {
  Pair* slot;
  Byte* memory;
  std::uint32_t bytes;
};
using OutgoingMessage = SlotMessage<machine::PacketPair, const std::byte>;
using IncomingMessage = SlotMessage<const machine::PacketPair, std::byte>;

/// A message, or the part of it in one slot, as pairs of packets.
template <class Pair, class Byte>
struct SlotPart {
  Pair* slot;
  Byte* memory;
  std::uint32_t bytes;
  std::uint32_t whole;  ///< pairs whose 8 bytes are one aligned word in memory
  std::uint32_t pairs;  ///< number of all pairs
};

/// Writes the pairs after the whole words: bytes at the end, unaligned bytes, an empty message, or the rest of a slot.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE void write_rest(Group group, SlotPart<machine::PacketPair, const std::byte> part,
                                                 std::uint32_t sequence) {
  BEELINE_NO_UNROLL
  for (std::uint32_t i = part.whole + group.thread_rank(); i < part.pairs; i += group.size()) {
    const std::uint64_t word = 8 * i < part.bytes ? gather_bytes(part.memory + 8 * i, part.bytes - 8 * i) : 0;
    machine::store_packets(part.slot + i, packets_of(word, sequence));
  }
}

/// Polls for `count` pairs of one thread, `stride` apart, until all have the flag of message `awaited.sequence`.
template <unsigned count>
BEELINE_HOST_DEVICE Status await_packets(const Context& ctx, const Awaited& awaited, Timeout timeout,
                                         const machine::PacketPair* first, std::uint32_t stride,
                                         machine::PacketPair (&pairs)[count]) {
  const auto sequence = static_cast<std::uint32_t>(awaited.sequence);
  return poll_until(ctx, awaited, timeout, [&](std::uint64_t& observed) {
    for (unsigned k = 0; k < count; ++k) pairs[k] = machine::load_packets(first + k * stride);
    bool all = true;
    for (unsigned k = 0; k < count; ++k) {
      if (has_flags(pairs[k], sequence)) continue;
      observed = pairs[k].low >> 32;
      all = false;
    }
    return all;
  });
}

/// Reads the pairs after the whole words.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status read_rest(Group group, const Context& ctx, Awaited awaited, Timeout timeout,
                                                  SlotPart<const machine::PacketPair, std::byte> part) {
  BEELINE_NO_UNROLL
  for (std::uint32_t i = part.whole + group.thread_rank(); i < part.pairs; i += group.size()) {
    machine::PacketPair pair[1];
    const Status status = await_packets(ctx, awaited, timeout, part.slot + i, 0, pair);
    if (status != Status::ok) return status;
    if (8 * i < part.bytes) scatter_bytes(part.memory + 8 * i, payload_of(pair[0]), part.bytes - 8 * i);
  }
  return Status::ok;
}

}  // namespace detail

/// Packets of 8 bytes, half of which are the flag: between ranks of all kinds, by any group.
///
/// The code that moves a slot's message has no loop and no call, and few instructions, if the message consists of whole
/// words, at most one for each thread.
struct LL {
  static constexpr std::uint32_t unit_bytes = 16;    ///< a unit of a ring is a pair
  static constexpr std::uint32_t payload_bytes = 8;  ///< payload of a unit
  static constexpr std::uint32_t threads = 1;        ///< the size of a group is a multiple of this

  /// Pairs whose 8 bytes are one aligned word in memory.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t whole_pairs(const std::byte* memory, std::uint32_t bytes) {
    return (reinterpret_cast<std::uintptr_t>(memory) & 7u) == 0 ? bytes / 8 : 0;
  }

  /// Sends a message in `units` pairs, which may be more than the message needs.
  template <class Group>
  BEELINE_HOST_DEVICE static void write(const Group& group, std::uint32_t sequence,
                                        const detail::OutgoingMessage& message, std::uint32_t units) {
    const std::uint32_t whole = whole_pairs(message.memory, message.bytes);
    if (units == whole && whole <= group.size()) [[likely]] {
      if (group.thread_rank() < whole) write_pairs<1>(group, sequence, message, group.thread_rank());
      return;
    }
    const std::uint32_t threads = group.size();
    std::uint32_t i = group.thread_rank();
    BEELINE_NO_UNROLL
    for (; i + 3 * threads < whole; i += 4 * threads) write_pairs<4>(group, sequence, message, i);
    BEELINE_NO_UNROLL
    for (; i < whole; i += threads) write_pairs<1>(group, sequence, message, i);
    if (units != whole)
      detail::write_rest(group,
                         detail::SlotPart<machine::PacketPair, const std::byte>{message.slot, message.memory,
                                                                                message.bytes, whole, units},
                         sequence);
  }

  /// Waits for this thread's part of a message of `units` pairs, and stores it. Returns the thread's status.
  template <class Group>
  [[nodiscard]] BEELINE_HOST_DEVICE static Status read(const Group& group, const Context& ctx, const Awaited& awaited,
                                                       Timeout timeout, const detail::IncomingMessage& message,
                                                       std::uint32_t units) {
    const std::uint32_t whole = whole_pairs(message.memory, message.bytes), threads = group.size();
    std::uint32_t i = group.thread_rank();
    if (units == whole && whole <= threads) [[likely]]
      return i < whole ? read_pairs<1>(ctx, awaited, timeout, message, {i, threads}) : Status::ok;
    Status status = Status::ok;
    BEELINE_NO_UNROLL
    for (; status == Status::ok && i + 3 * threads < whole; i += 4 * threads)
      status = read_pairs<4>(ctx, awaited, timeout, message, {i, threads});
    BEELINE_NO_UNROLL
    for (; status == Status::ok && i < whole; i += threads)
      status = read_pairs<1>(ctx, awaited, timeout, message, {i, threads});
    if (units != whole && status == Status::ok)
      status = detail::read_rest(group, ctx, awaited, timeout,
                                 detail::SlotPart<const machine::PacketPair, std::byte>{message.slot, message.memory,
                                                                                        message.bytes, whole, units});
    return status;
  }

 private:
  /// Writes `count` pairs of this thread at once, so that their loads overlap.
  template <unsigned count, class Group>
  BEELINE_HOST_DEVICE static void write_pairs(const Group& group, std::uint32_t sequence,
                                              const detail::OutgoingMessage& message, std::uint32_t first) {
    std::uint64_t words[count];
    for (unsigned k = 0; k < count; ++k)
      words[k] = machine::load_as<std::uint64_t>(message.memory + std::size_t{8} * (first + k * group.size()));
    for (unsigned k = 0; k < count; ++k)
      machine::store_packets(message.slot + first + k * group.size(), detail::packets_of(words[k], sequence));
  }
  /// The pairs that a thread receives: the first, and the distance from one to the next.
  struct ThreadPairs {
    std::uint32_t first, stride;
  };
  template <unsigned count>
  [[nodiscard]] BEELINE_HOST_DEVICE static Status read_pairs(const Context& ctx, const Awaited& awaited,
                                                             Timeout timeout, const detail::IncomingMessage& message,
                                                             ThreadPairs mine) {
    machine::PacketPair pairs[count];
    const Status status = detail::await_packets(ctx, awaited, timeout, message.slot + mine.first, mine.stride, pairs);
    if (status != Status::ok) return status;
    for (unsigned k = 0; k < count; ++k)
      machine::store_as(message.memory + std::size_t{8} * (mine.first + k * mine.stride), detail::payload_of(pairs[k]));
    return status;
  }
};

}  // namespace beeline
