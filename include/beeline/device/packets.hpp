// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Packets (LL): data and flag travel in one 8-byte store, so that arrival needs no fence: the lowest latency.
///
/// A pair of packets is one 16-byte access: {4 bytes of data, flag} twice. The flag is the low half of the message's
/// sequence number. A ring slot keeps old flags of earlier laps; every 2^30 messages the sender rewrites whole slots,
/// so that no flag is old enough to be taken for a new one after the sequence wraps.

#include <cstddef>
#include <cstdint>

#include "beeline/device/impl/caller_check.hpp"

namespace beeline {

/// One rank's state towards one peer, in symmetric memory. Sequences wrap at 2^32.
struct alignas(128) PacketState {
  std::uint32_t sent, received;              ///< sequence of the last message, each way
  std::uint32_t credit;                      ///< messages of mine known to be unpacked, as last looked up
  std::uint64_t sent_bytes, received_bytes;  ///< progress of a message that a time-out interrupted
  alignas(64) std::uint32_t consumed;        ///< written by the peer: messages of mine that it has unpacked
};

/// A symmetric set of rings, one from each rank to each other, made by `PacketRings`. Passed by value.
struct PacketChannel {
  machine::PacketPair* rings;  ///< [ranks, depth, slot_pairs] at the receiver
  PacketState* states;         ///< [ranks]
  std::uint32_t depth;         ///< messages in flight, a power of two, at least 2; half of them are always granted
  std::uint32_t slot_pairs;    ///< 8 bytes of payload each
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t slot_bytes() const { return std::size_t{8} * slot_pairs; }
};

namespace detail {

/// Whole slots are rewritten when the sequence passes a multiple of this.
inline constexpr std::uint32_t packet_sweep_period = std::uint32_t{1} << 30;

/// At most 8 bytes as a little-endian word, byte by byte.
BEELINE_COLD BEELINE_HOST_DEVICE inline std::uint64_t gather_bytes(const std::byte* from, std::size_t bytes) {
  std::uint64_t word = 0;
  BEELINE_NO_UNROLL
  for (std::size_t i = 0; i < 8 && i < bytes; ++i) word |= static_cast<std::uint64_t>(from[i]) << (8 * i);
  return word;
}
BEELINE_COLD BEELINE_HOST_DEVICE inline void scatter_bytes(std::byte* to, std::uint64_t word, std::size_t bytes) {
  BEELINE_NO_UNROLL
  for (std::size_t i = 0; i < 8 && i < bytes; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
}

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

/// Until the receiver has unpacked message `awaited.expected`. Once or twice a lap, so out of the way of messages.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status await_consumed(Group group, const Context& ctx, Awaited awaited,
                                                       Timeout timeout, std::uint32_t* consumed) {
  const auto needed = static_cast<std::uint32_t>(awaited.expected);
  // Acquire: the slot may be overwritten once the receiver's reads of it are known to be over.
  const Status status = await_word(
      ctx, awaited, timeout, SystemAtomic<std::uint32_t>(*consumed), Order::memory, [needed](std::uint64_t observed) {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(observed) - needed) >= 0;
      });
  return agree(group, status);
}

/// A message, or the part of it in one slot.
template <class Pair, class Byte>
struct SlotPart {
  Pair* slot;
  Byte* memory;
  std::uint32_t bytes;
  std::uint32_t whole;  ///< pairs whose 8 bytes are one aligned word in memory
  std::uint32_t pairs;  ///< all
};

/// Writes the pairs behind the whole words: of bytes that end or lie unaligned, of nothing, or of a slot's remainder.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE void write_rest(Group group, SlotPart<machine::PacketPair, const std::byte> part,
                                                 std::uint32_t sequence) {
  BEELINE_NO_UNROLL
  for (std::uint32_t i = part.whole + group.thread_rank(); i < part.pairs; i += group.size()) {
    const std::uint64_t word = 8 * i < part.bytes ? gather_bytes(part.memory + 8 * i, part.bytes - 8 * i) : 0;
    machine::store_packets(part.slot + i, packets_of(word, sequence));
  }
}

/// Polls for `count` pairs of one thread, `stride` apart, until all are of message `awaited.sequence`.
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

/// Reads the pairs behind the whole words.
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

inline namespace BEELINE_CALLS {

/// One rank's end of the channel to `peer`, opened by one group; sequence numbers live in its registers, and in
/// memory for the next port. At most one group of a rank sends to a peer at a time, and one receives from it.
///
/// Its arithmetic is of 32 bits: between a flag's arrival and the answer, every instruction counts.
template <class Group>
class PacketPort {
 public:
  /// Every thread of `group` calls it. A peer outside the team: see access.hpp.
  BEELINE_HOST_DEVICE PacketPort(const Group& group, const Context& ctx, const PacketChannel& channel,
                                 std::uint32_t peer)
      : group_(group), ctx_(ctx), peer_(detail::checked_peer(ctx, Operation::packet_send, peer)), depth_(channel.depth),
        slot_bytes_(8 * channel.slot_pairs), state_(&channel.states[peer]),
        credit_word_(&ctx.translate(&channel.states[ctx.rank], peer)->consumed),
        out_(ctx.translate(channel.rings + ring_offset(channel, ctx.rank), peer)),
        in_(channel.rings + ring_offset(channel, peer)) {
    group_.sync();  // what an earlier port of this group left in memory is there
    first_sent_ = sent_ = state_->sent, first_received_ = received_ = state_->received, credit_ = state_->credit;
    prepare_slot();
    group_.sync();  // every thread has read it before the first changes it
  }
  /// Leaves the sequence numbers for the next port: those of the directions that it used, since a group may have one
  /// port to send and another to receive.
  BEELINE_HOST_DEVICE ~PacketPort() {
    return_credit();
    if (group_.thread_rank() != 0) return;
    if (sent_ != first_sent_) state_->sent = sent_, state_->credit = credit_;
    if (received_ != first_received_) state_->received = received_;
  }
  PacketPort(const PacketPort&) = delete;
  PacketPort& operator=(const PacketPort&) = delete;

  /// Sends `bytes` from `source`; messages above a slot's size use several slots. `source` may be reused on return.
  /// Blocks only while the receiver is at least `depth` / 2 messages behind.
  /// Every thread of the group calls it, and gets the same status: ok, timeout, deadline, aborted.
  [[nodiscard]] BEELINE_HOST_DEVICE Status send(const void* source, std::size_t bytes,
                                                Timeout timeout = Timeout::none()) {
    const auto* from = static_cast<const std::byte*>(source);
    if (bytes > slot_bytes_) [[unlikely]]
      return send_parts(from, bytes, timeout);
    if (sent_ - credit_ == depth_) [[unlikely]]
      if (const Status status = renew_credit(timeout); status != Status::ok) return status;
    write_slot(from, static_cast<std::uint32_t>(bytes));
    return Status::ok;
  }

  /// Receives a message of `bytes`, as many as were sent, into `destination`, visible to the whole group on return.
  /// Every thread of the group calls it, and gets the same status: ok, timeout, deadline, aborted.
  [[nodiscard]] BEELINE_HOST_DEVICE Status receive(void* destination, std::size_t bytes,
                                                   Timeout timeout = Timeout::none()) {
    auto* to = static_cast<std::byte*>(destination);
    if (bytes > slot_bytes_) [[unlikely]]
      return receive_parts(to, bytes, timeout);
    return read_slot(to, static_cast<std::uint32_t>(bytes), timeout);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE static std::size_t ring_offset(const PacketChannel& channel, std::uint32_t from) {
    return static_cast<std::size_t>(from) * channel.depth * channel.slot_pairs;
  }
  /// The place of message `sequence` in a ring: one multiplication of 32 bits and an addition.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* slot_of(machine::PacketPair* ring,
                                                                 std::uint32_t sequence) const {
    const std::uint32_t stride = 2 * slot_bytes_;
    return reinterpret_cast<machine::PacketPair*>(reinterpret_cast<std::byte*>(ring) +
                                                  std::uint64_t{sequence & (depth_ - 1)} * stride);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t part_of(std::size_t bytes) const {
    return bytes < slot_bytes_ ? static_cast<std::uint32_t>(bytes) : slot_bytes_;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t half_lap() const { return depth_ / 2; }
  /// Packet pairs that carry `bytes`: an empty message has one.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t pairs_for(std::uint32_t bytes) {
    return bytes == 0 ? 1 : (bytes + 7) / 8;
  }
  /// Pairs whose 8 bytes are one aligned word in memory.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t whole_pairs(const std::byte* memory, std::uint32_t bytes) {
    return (reinterpret_cast<std::uintptr_t>(memory) & 7u) == 0 ? bytes / 8 : 0;
  }

  BEELINE_HOST_DEVICE Status send_parts(const std::byte* source, std::size_t bytes, Timeout timeout) {
    for (std::size_t done = take(state_->sent_bytes); done < bytes;) {
      const Status status = await_credit(timeout);
      if (status != Status::ok) return interrupted(state_->sent_bytes, done, status);
      const std::uint32_t part = part_of(bytes - done);
      write_slot(source + done, part);
      done += part;
    }
    return Status::ok;
  }

  BEELINE_HOST_DEVICE Status receive_parts(std::byte* destination, std::size_t bytes, Timeout timeout) {
    for (std::size_t done = take(state_->received_bytes); done < bytes;) {
      const std::uint32_t part = part_of(bytes - done);
      const Status status = read_slot(destination + done, part, timeout);
      if (status != Status::ok) return interrupted(state_->received_bytes, done, status);
      done += part;
    }
    return Status::ok;
  }

  /// Where an interrupted message of more than one slot goes on; 0 for a new one.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t take(std::uint64_t& progress) {
    const std::size_t done = progress;
    group_.sync();
    if (done == 0) return 0;
    if (group_.thread_rank() == 0) progress = 0;
    group_.sync();  // the next message of many slots must not find it
    return done;
  }
  BEELINE_HOST_DEVICE Status interrupted(std::uint64_t& progress, std::size_t done, Status status) {
    if (group_.thread_rank() == 0) progress = done;
    group_.sync();
    return status;
  }

  BEELINE_HOST_DEVICE Status await_credit(Timeout timeout) {
    return sent_ - credit_ < depth_ ? Status::ok : renew_credit(timeout);
  }
  /// Every thread decides alike: `credit_` follows from the sequence, not from what each thread happened to see.
  BEELINE_HOST_DEVICE Status renew_credit(Timeout timeout) {
    const std::uint32_t needed = sent_ + 1 - depth_;
    const Awaited awaited{Operation::packet_send, peer_, sent_ + 1, needed};
    const Status status = detail::await_consumed(group_, ctx_, awaited, timeout, &state_->consumed);
    // Credits come back at multiples of half a lap only, so that `needed` of them means all up to the next multiple.
    if (status == Status::ok) credit_ = (needed + half_lap() - 1) & ~(half_lap() - 1);
    return status;
  }

  /// Writes message `sent_` + 1, then makes ready what the next one needs, while this one travels. A message of whole
  /// words, at most one for each thread, takes the straight way: no loop, no call, few lines of instructions.
  BEELINE_HOST_DEVICE void write_slot(const std::byte* source, std::uint32_t bytes) {
    const std::uint32_t whole = whole_pairs(source, bytes);
    const std::uint32_t pairs = rewrites_slot_ ? slot_bytes_ / 8 : pairs_for(bytes);
    if (pairs == whole && whole <= group_.size()) [[likely]] {
      if (group_.thread_rank() < whole) write_pairs<1>(source, group_.thread_rank());
    } else {
      write_many(source, {.slot = out_slot_, .memory = source, .bytes = bytes, .whole = whole, .pairs = pairs});
    }
    ++sent_;
    prepare_slot();
    // Credits are looked for when they are due, not when they are used up: this message travels meanwhile.
    if (sent_ - credit_ == depth_) [[unlikely]]
      static_cast<void>(renew_credit(Timeout::test()));
  }
  BEELINE_HOST_DEVICE void write_many(const std::byte* source,
                                      const detail::SlotPart<machine::PacketPair, const std::byte>& part) {
    const std::uint32_t threads = group_.size();
    std::uint32_t i = group_.thread_rank();
    BEELINE_NO_UNROLL
    for (; i + 3 * threads < part.whole; i += 4 * threads) write_pairs<4>(source, i);
    BEELINE_NO_UNROLL
    for (; i < part.whole; i += threads) write_pairs<1>(source, i);
    if (part.pairs != part.whole) detail::write_rest(group_, part, sent_ + 1);
  }
  BEELINE_HOST_DEVICE void prepare_slot() {
    out_slot_ = slot_of(out_, sent_ + 1);
    rewrites_slot_ = ((sent_ + 1) & (detail::packet_sweep_period - 1)) < depth_;
  }

  /// `count` pairs of this thread at once, so that their loads overlap.
  template <unsigned count>
  BEELINE_HOST_DEVICE void write_pairs(const std::byte* source, std::uint32_t first) {
    std::uint64_t words[count];
    for (unsigned k = 0; k < count; ++k)
      words[k] = machine::load_as<std::uint64_t>(source + std::size_t{8} * (first + k * group_.size()));
    for (unsigned k = 0; k < count; ++k)
      machine::store_packets(out_slot_ + first + k * group_.size(), detail::packets_of(words[k], sent_ + 1));
  }

  BEELINE_HOST_DEVICE Status read_slot(std::byte* destination, std::uint32_t bytes, Timeout timeout) {
    if (owes_credit_) [[unlikely]]
      return_credit();
    const std::uint32_t sequence = received_ + 1;
    const Awaited awaited{Operation::packet_receive, peer_, sequence, sequence, Compare::equal};
    const std::uint32_t whole = whole_pairs(destination, bytes), pairs = pairs_for(bytes);
    const machine::PacketPair* slot = slot_of(in_, sequence);
    if (pairs != whole || whole > group_.size()) [[unlikely]]
      return received(sequence,
                      read_many(awaited, timeout,
                                {.slot = slot, .memory = destination, .bytes = bytes, .whole = whole, .pairs = pairs}));
    Status status = Status::ok;
    const std::uint32_t i = group_.thread_rank();
    if (i < whole) status = read_pairs<1>(awaited, timeout, slot + i, destination + std::size_t{8} * i);
    return received(sequence, status);
  }
  /// Ends the receipt of a message. Every thread calls it from the same place: it may be a barrier.
  BEELINE_HOST_DEVICE Status received(std::uint32_t sequence, Status mine) {
    const Status status = agree(group_, mine);
    if (status == Status::ok) consume(sequence);
    return status;
  }
  BEELINE_HOST_DEVICE Status read_many(const Awaited& awaited, Timeout timeout,
                                       const detail::SlotPart<const machine::PacketPair, std::byte>& part) {
    const std::uint32_t threads = group_.size();
    std::uint32_t i = group_.thread_rank();
    Status status = Status::ok;
    BEELINE_NO_UNROLL
    for (; status == Status::ok && i + 3 * threads < part.whole; i += 4 * threads)
      status = read_pairs<4>(awaited, timeout, part.slot + i, part.memory + std::size_t{8} * i);
    BEELINE_NO_UNROLL
    for (; status == Status::ok && i < part.whole; i += threads)
      status = read_pairs<1>(awaited, timeout, part.slot + i, part.memory + std::size_t{8} * i);
    if (part.pairs != part.whole && status == Status::ok)
      status = detail::read_rest(group_, ctx_, awaited, timeout, part);
    return status;
  }

  /// `count` pairs of this thread at once.
  template <unsigned count>
  BEELINE_HOST_DEVICE Status read_pairs(const Awaited& awaited, Timeout timeout, const machine::PacketPair* first,
                                        std::byte* destination) {
    machine::PacketPair pairs[count];
    const Status status = detail::await_packets(ctx_, awaited, timeout, first, group_.size(), pairs);
    if (status != Status::ok) return status;
    for (unsigned k = 0; k < count; ++k)
      machine::store_as(destination + std::size_t{8} * k * group_.size(), detail::payload_of(pairs[k]));
    return status;
  }

  /// Credits are due twice a lap: often enough to keep the sender going, rarely enough for their release to be cheap.
  /// They go back when the next message is asked for: its way here hides what the release costs.
  BEELINE_HOST_DEVICE void consume(std::uint32_t sequence) {
    received_ = sequence;
    owes_credit_ = (sequence & (half_lap() - 1)) == 0;
  }
  BEELINE_HOST_DEVICE void return_credit() {
    if (owes_credit_ && group_.thread_rank() == 0)
      detail::SystemAtomic<std::uint32_t>(*credit_word_).store(received_, cuda::memory_order_release);
    owes_credit_ = false;
  }

  Group group_;
  const Context& ctx_;
  std::uint32_t peer_, depth_, slot_bytes_;
  PacketState* state_;
  std::uint32_t* credit_word_;
  machine::PacketPair* out_;
  machine::PacketPair* in_;
  std::uint32_t sent_ = 0, received_ = 0, credit_ = 0, first_sent_ = 0, first_received_ = 0;
  machine::PacketPair* out_slot_ = nullptr;  ///< of message `sent_` + 1
  bool rewrites_slot_ = false;               ///< whether that message rewrites its whole slot
  bool owes_credit_ = false;                 ///< whether message `received_` is the last of half a lap
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
