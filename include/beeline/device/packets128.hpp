// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Packets of 128 bytes (LL128): 120 bytes of data and 8 of flag in one line, stored by eight neighbouring threads of a
/// warp in one instruction. Where packets spend half of every store on flags, these spend a sixteenth.
///
/// Nothing guarantees that a line arrives whole: PTX promises it for 8 bytes. So lines travel between GPUs only, and
/// only in worlds whose self-test has seen no torn one (`Packets128Rings`, beeline/host/packets.hpp); elsewhere
/// packets (LL) serve. Source: NCCL's LL128 protocol.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/device/impl/warp_machine.hpp"
#include "beeline/device/packets.hpp"

namespace beeline {

/// A line, what it carries, and the threads that move it: 16 bytes each, the last one 8 of data and the flag.
inline constexpr std::uint32_t line_bytes = 128, line_payload_bytes = 120, line_threads = 8;

/// A symmetric set of rings of lines, one from each rank to each other. Passed by value.
struct Packets128Channel {
  PacketChannel slots;  ///< memory, depth and state: a line takes that of `line_threads` pairs of packets
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t slot_lines() const { return slots.slot_pairs / line_threads; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t slot_bytes() const {
    return std::size_t{line_payload_bytes} * slot_lines();
  }
};

namespace detail {

/// As `poll_until`, by a whole warp: until `ready()` holds on all its threads, which get the same result. One that
/// waits still looks at the clock, and records what it waits for: `awaited(observed)` returns that, and sets what it
/// saw.
template <class Ready, class AwaitedOf>
BEELINE_HOST_DEVICE Status poll_by_warp(const Context& ctx, Timeout timeout, Ready ready, AwaitedOf awaited) {
  WaitState state{Status::ok, 0};
  for (;;) {
    bool waits = true;
    BEELINE_NO_UNROLL
    for (std::uint32_t left = polls_per_look; left > 0; --left) {
      waits = !ready();
      if (!machine::warp_any(waits)) return Status::ok;
      if (timeout.ns == 0) return Status::timeout;
    }
    const unsigned looker = machine::first_lane(waits);
    if (machine::lane() == looker) {
      std::uint64_t observed = 0;
      const Awaited what = awaited(observed);
      state = look(ctx, what, timeout, observed, state.start_ns);
    }
    state.start_ns = machine::from_lane(state.start_ns, looker);  // another may look next
    const Status status = agree(Warp{}, state.status);
    if (status != Status::ok) return status;
  }
}

/// Lines that a warp moves in one instruction.
inline constexpr std::uint32_t lines_of_warp = 32 / line_threads;

/// Calls `visit(line, thread, exists)` on all threads of every warp that has one of the `lines`, also those that have
/// none themselves: votes and stores are the warp's. A line is always the same threads'.
template <class Group, class Visit>
BEELINE_INLINE BEELINE_HOST_DEVICE void for_each_line(const Group& group, std::uint32_t lines, const Visit& visit) {
  const std::uint32_t thread = group.thread_rank() % line_threads, first = group.thread_rank() / line_threads;
  const std::uint32_t first_of_warp = first / lines_of_warp * lines_of_warp, step = group.size() / line_threads;
  BEELINE_NO_UNROLL
  for (std::uint32_t base = 0; base + first_of_warp < lines; base += step)
    visit(base + first, thread, base + first < lines);
}

/// One thread's part of a line.
struct LinePart {
  BEELINE_HOST_DEVICE LinePart(std::uint32_t line, std::uint32_t thread)
      : offset(line * line_payload_bytes + 16 * thread), holds_flag(thread == line_threads - 1) {}
  std::uint32_t offset;  ///< of its payload in the message
  bool holds_flag;       ///< then 8 bytes of payload, otherwise 16

  /// Whether its payload is whole aligned words of a message of `bytes`.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_whole(std::uint32_t bytes, bool aligned) const {
    return aligned && offset + (holds_flag ? 8 : 16) <= bytes;
  }
};

[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_aligned(const std::byte* memory) {
  return (reinterpret_cast<std::uintptr_t>(memory) & 7u) == 0;
}

/// Eight bytes of a message from `at` on, zeros behind its end.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t word_at(const std::byte* message, std::uint32_t at,
                                                               std::uint32_t bytes) {
  if (at >= bytes) return 0;
  if (at + 8 <= bytes && is_aligned(message)) return machine::load_as<std::uint64_t>(message + at);
  return gather_bytes(message + at, bytes - at);
}
BEELINE_HOST_DEVICE inline void put_word_at(std::byte* message, std::uint32_t at, std::uint32_t bytes,
                                            std::uint64_t word) {
  if (at >= bytes) return;
  if (at + 8 <= bytes && is_aligned(message))
    machine::store_as(message + at, word);
  else
    scatter_bytes(message + at, word, bytes - at);
}

/// The part's words where they are not whole. Of a part with the flag the first counts.
BEELINE_COLD BEELINE_HOST_DEVICE inline machine::PacketPair gather_part(const std::byte* message, std::uint32_t offset,
                                                                        std::uint32_t bytes) {
  return {word_at(message, offset, bytes), word_at(message, offset + 8, bytes)};
}
BEELINE_COLD BEELINE_HOST_DEVICE inline void scatter_part(std::byte* message, LinePart part, std::uint32_t bytes,
                                                          machine::PacketPair words) {
  put_word_at(message, part.offset, bytes, words.low);
  if (!part.holds_flag) put_word_at(message, part.offset + 8, bytes, words.high);
}

}  // namespace detail

inline namespace BEELINE_CALLS {

/// One rank's end of the channel to `peer`, opened by a warp or a block of whole warps: as `PacketPort`, with the same
/// rules. At most one group of a rank sends to a peer at a time, and one receives from it.
template <class Group>
class Packets128Port {
  static_assert(!std::is_same_v<Group, Thread>, "lines are stored by whole warps");

 public:
  /// Every thread of `group` calls it. A peer outside the team, a warp that is not whole: see access.hpp.
  BEELINE_HOST_DEVICE Packets128Port(const Group& group, const Context& ctx, const Packets128Channel& channel,
                                     std::uint32_t peer)
      : group_(group), ctx_(ctx), peer_(detail::checked_peer(ctx, Operation::packet_send, peer)),
        depth_(channel.slots.depth), slot_lines_(channel.slot_lines()), state_(&channel.slots.states[peer]),
        consumed_there_(&ctx.translate(&channel.slots.states[ctx.rank], peer)->consumed),
        out_(ctx.translate(ring_of(channel.slots, ctx.rank), peer)), in_(ring_of(channel.slots, peer)) {
    if (detail::checks_operations && detail::executor == DeviceKind::gpu && group.size() % 32 != 0)
      detail::stop_call(ctx, Operation::packet_send, peer, {CallFault::partial_warp, 32, group.size()});
    group_.sync();  // what an earlier port of this group left in memory is there
    first_sent_ = sent_ = state_->sent, first_received_ = received_ = state_->received, credit_ = state_->credit;
    group_.sync();  // every thread has read it before the first changes it
  }
  /// Leaves the sequence numbers of the directions that it used for the next port.
  BEELINE_HOST_DEVICE ~Packets128Port() {
    if (group_.thread_rank() != 0) return;
    if (sent_ != first_sent_) state_->sent = sent_, state_->credit = credit_;
    if (received_ != first_received_) state_->received = received_;
  }
  Packets128Port(const Packets128Port&) = delete;
  Packets128Port& operator=(const Packets128Port&) = delete;

  /// Sends `bytes` from `source`; messages above a slot's size use several slots. `source` may be reused on return.
  /// Blocks only while the receiver is at least `depth` / 2 messages behind.
  /// Every thread of the group calls it, and gets the same status: ok, timeout, deadline, aborted.
  [[nodiscard]] BEELINE_HOST_DEVICE Status send(const void* source, std::size_t bytes,
                                                Timeout timeout = Timeout::none()) {
    const auto* from = static_cast<const std::byte*>(source);
    return in_parts(state_->sent_bytes, bytes, [&](std::size_t done, std::uint32_t part) {
      const Status status = await_credit(timeout);
      if (status == Status::ok) write_slot(from + done, part);
      return status;
    });
  }

  /// Receives a message of `bytes`, as many as were sent, into `destination`, visible to the whole group on return.
  /// Every thread of the group calls it, and gets the same status: ok, timeout, deadline, aborted.
  [[nodiscard]] BEELINE_HOST_DEVICE Status receive(void* destination, std::size_t bytes,
                                                   Timeout timeout = Timeout::none()) {
    auto* to = static_cast<std::byte*>(destination);
    return in_parts(state_->received_bytes, bytes,
                    [&](std::size_t done, std::uint32_t part) { return read_slot(to + done, part, timeout); });
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE static machine::PacketPair* ring_of(const PacketChannel& slots,
                                                                        std::uint32_t from) {
    return slots.rings + static_cast<std::size_t>(from) * slots.depth * slots.slot_pairs;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* slot_of(machine::PacketPair* ring,
                                                                 std::uint32_t sequence) const {
    return ring + std::uint64_t{sequence & (depth_ - 1)} * slot_lines_ * line_threads;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t slot_bytes() const { return slot_lines_ * line_payload_bytes; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t half_lap() const { return depth_ / 2; }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t lines_for(std::uint32_t bytes) {
    return bytes == 0 ? 1 : (bytes + line_payload_bytes - 1) / line_payload_bytes;
  }
  /// The word that ends a line of message `sequence`: where a new ring holds the sequence before the first.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t flag_of(std::uint32_t sequence) {
    return std::uint64_t{sequence} << 32;
  }

  /// Moves a message slot by slot with `move(done, part)`. One of several slots that is interrupted leaves its
  /// `progress`, where the next call goes on.
  template <class Move>
  BEELINE_HOST_DEVICE Status in_parts(std::uint64_t& progress, std::size_t bytes, Move move) {
    if (bytes <= slot_bytes()) return move(0, static_cast<std::uint32_t>(bytes));
    std::size_t done = progress;
    group_.sync();  // every thread has read it
    while (done < bytes) {
      const std::size_t rest = bytes - done;
      const std::uint32_t part = rest < slot_bytes() ? static_cast<std::uint32_t>(rest) : slot_bytes();
      const Status status = move(done, part);
      if (status != Status::ok) return leave(progress, done, status);
      done += part;
    }
    return leave(progress, 0, Status::ok);
  }
  BEELINE_HOST_DEVICE Status leave(std::uint64_t& progress, std::size_t done, Status status) {
    if (group_.thread_rank() == 0) progress = done;
    group_.sync();
    return status;
  }

  /// Every thread decides alike: `credit_` follows from the sequence, not from what each thread happened to see.
  BEELINE_HOST_DEVICE Status await_credit(Timeout timeout) {
    if (sent_ - credit_ < depth_) return Status::ok;
    const std::uint32_t needed = sent_ + 1 - depth_;
    const Awaited awaited{Operation::packet_send, peer_, sent_ + 1, needed};
    const Status status = detail::await_consumed(group_, ctx_, awaited, timeout, &state_->consumed);
    // Credits come back at multiples of half a lap only, so that `needed` of them means all up to the next multiple.
    if (status == Status::ok) credit_ = (needed + half_lap() - 1) & ~(half_lap() - 1);
    return status;
  }

  BEELINE_HOST_DEVICE void write_slot(const std::byte* source, std::uint32_t bytes) {
    ++sent_;
    machine::PacketPair* slot = slot_of(out_, sent_);
    const bool sweep = (sent_ & (detail::packet_sweep_period - 1)) < depth_;
    const bool aligned = detail::is_aligned(source);
    const std::uint32_t lines = sweep ? slot_lines_ : lines_for(bytes);
    detail::for_each_line(group_, lines, [&](std::uint32_t line, std::uint32_t thread, bool exists) {
      const detail::LinePart part(line, thread);
      machine::PacketPair words{};
      if (exists && part.is_whole(bytes, aligned)) {
        words.low = machine::load_as<std::uint64_t>(source + part.offset);
        if (!part.holds_flag) words.high = machine::load_as<std::uint64_t>(source + part.offset + 8);
      } else if (exists) {
        words = detail::gather_part(source, part.offset, bytes);
      }
      if (part.holds_flag) words.high = flag_of(sent_);
      machine::warp_sync();  // a line is whole only when its eight threads store in one instruction
      if (exists) machine::store_packets(slot + line * line_threads + thread, words);
    });
  }

  BEELINE_HOST_DEVICE Status read_slot(std::byte* destination, std::uint32_t bytes, Timeout timeout) {
    const std::uint32_t sequence = received_ + 1;
    const machine::PacketPair* slot = slot_of(in_, sequence);
    const bool aligned = detail::is_aligned(destination);
    Status status = Status::ok;
    detail::for_each_line(group_, lines_for(bytes), [&](std::uint32_t line, std::uint32_t thread, bool exists) {
      if (status != Status::ok) return;  // the same on the whole warp
      const detail::LinePart part(line, thread);
      machine::PacketPair words{};
      const auto has_come = [&] {
        machine::warp_sync();  // a line's data and flag in one instruction
        if (exists) words = machine::load_packets(slot + line * line_threads + thread);
        return !exists || !part.holds_flag || words.high == flag_of(sequence);
      };
      status = detail::poll_by_warp(ctx_, timeout, has_come, [&](std::uint64_t& observed) {
        observed = words.high >> 32;
        return Awaited{Operation::packet_receive, peer_, sequence, sequence, Compare::equal};
      });
      if (status != Status::ok || !exists) return;
      if (part.is_whole(bytes, aligned)) {
        machine::store_as(destination + part.offset, words.low);
        if (!part.holds_flag) machine::store_as(destination + part.offset + 8, words.high);
      } else {
        detail::scatter_part(destination, part, bytes, words);
      }
    });
    status = agree(group_, status);
    if (status == Status::ok) consume(sequence);
    return status;
  }

  /// Credits go back twice a lap: often enough to keep the sender going, rarely enough for their release to be cheap.
  BEELINE_HOST_DEVICE void consume(std::uint32_t sequence) {
    received_ = sequence;
    if (group_.thread_rank() == 0 && (sequence & (half_lap() - 1)) == 0)
      detail::SystemAtomic<std::uint32_t>(*consumed_there_).store(sequence, cuda::memory_order_release);
  }

  Group group_;
  const Context& ctx_;
  std::uint32_t peer_, depth_, slot_lines_;
  PacketState* state_;
  std::uint32_t* consumed_there_;
  machine::PacketPair* out_;
  machine::PacketPair* in_;
  std::uint32_t sent_ = 0, received_ = 0, credit_ = 0, first_sent_ = 0, first_received_ = 0;
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
