// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Packets: data and flag travel in one store, so that arrival needs no fence: the lowest latency. In the protocol LL
/// (device/impl/ll.hpp) half of 8 bytes is flag; in LL128 (device/impl/ll128.hpp) a sixteenth of 128, which only GPUs
/// store whole.
///
/// The flag is the message's sequence number, of 32 bits. A ring slot keeps old flags of earlier laps; every 2^30
/// messages the sender rewrites whole slots, so that no flag is old enough to be taken for a new one after the sequence
/// wraps.

#include <cstddef>
#include <cstdint>

#include "beeline/device/impl/caller_check.hpp"
#include "beeline/device/impl/ll128.hpp"

namespace beeline {

/// One rank's state towards one peer, in symmetric memory. Sequences wrap at 2^32.
struct alignas(128) PacketState {
  std::uint32_t sent, received;              ///< sequence of the last message, each way
  std::uint32_t credit;                      ///< messages of mine known to be unpacked, as last looked up
  std::uint64_t sent_bytes, received_bytes;  ///< progress of a message that a time-out interrupted
  alignas(64) std::uint32_t consumed;        ///< written by the peer: messages of mine that it has unpacked
};

/// A symmetric set of rings, one from each rank to each other, made by `ProtocolRings`. Passed by value.
template <class Protocol>
struct ProtocolChannel {
  machine::PacketPair* rings;  ///< [ranks, depth, slot_units, Protocol::unit_bytes] at the receiver
  PacketState* states;         ///< [ranks]
  std::uint32_t depth;         ///< messages in flight, a power of two, at least 2; half of them are always granted
  std::uint32_t slot_units;    ///< `Protocol::payload_bytes` each
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t slot_bytes() const {
    return std::size_t{Protocol::payload_bytes} * slot_units;
  }
};
using PacketChannel = ProtocolChannel<LL>;
using LL128Channel = ProtocolChannel<LL128>;

namespace detail {

/// Whole slots are rewritten when the sequence passes a multiple of this.
inline constexpr std::uint32_t packet_sweep_period = std::uint32_t{1} << 30;

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

}  // namespace detail

inline namespace BEELINE_CALLS {

/// One rank's end of the channel to `peer`, opened by one group (for LL128 a warp or a block of whole warps); sequence
/// numbers live in its registers, and in memory for the next port. At most one group of a rank sends to a peer at a
/// time, and one receives from it.
///
/// Its arithmetic is of 32 bits: between a flag's arrival and the answer, every instruction counts.
template <class Group, class Protocol = LL>
class PacketPort {
  static_assert(Protocol::threads == 1 || !std::is_same_v<Group, Thread>, "lines are stored by whole warps");

 public:
  /// Every thread of `group` calls it. A peer outside the team, a warp that is not whole: see access.hpp.
  BEELINE_HOST_DEVICE PacketPort(const Group& group, const Context& ctx, const ProtocolChannel<Protocol>& channel,
                                 std::uint32_t peer)
      : group_(group), ctx_(ctx), peer_(detail::checked_peer(ctx, Operation::packet_send, peer)), depth_(channel.depth),
        slot_units_(channel.slot_units), state_(&channel.states[peer]),
        credit_word_(&ctx.translate(&channel.states[ctx.rank], peer)->consumed),
        out_(ctx.translate(ring_of(channel, ctx.rank), peer)), in_(ring_of(channel, peer)) {
    if (detail::checks_operations && detail::executor == DeviceKind::gpu && group.size() % Protocol::threads != 0)
      detail::stop_call(ctx, Operation::packet_send, peer, {CallFault::partial_warp, 32, group.size()});
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
    if (bytes > slot_bytes()) [[unlikely]]
      return in_parts(state_->sent_bytes, bytes,
                      [&](std::size_t done, std::uint32_t part) { return send_slot(from + done, part, timeout); });
    return send_slot(from, static_cast<std::uint32_t>(bytes), timeout);
  }

  /// Receives a message of `bytes`, as many as were sent, into `destination`, visible to the whole group on return.
  /// Every thread of the group calls it, and gets the same status: ok, timeout, deadline, aborted.
  [[nodiscard]] BEELINE_HOST_DEVICE Status receive(void* destination, std::size_t bytes,
                                                   Timeout timeout = Timeout::none()) {
    auto* to = static_cast<std::byte*>(destination);
    if (bytes > slot_bytes()) [[unlikely]]
      return in_parts(state_->received_bytes, bytes,
                      [&](std::size_t done, std::uint32_t part) { return read_slot(to + done, part, timeout); });
    return read_slot(to, static_cast<std::uint32_t>(bytes), timeout);
  }

 private:
  /// The ring of what `from` sends.
  [[nodiscard]] BEELINE_HOST_DEVICE static machine::PacketPair* ring_of(const ProtocolChannel<Protocol>& channel,
                                                                        std::uint32_t from) {
    constexpr std::size_t pairs = Protocol::unit_bytes / sizeof(machine::PacketPair);
    return channel.rings + pairs * from * channel.depth * channel.slot_units;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t slot_bytes() const { return Protocol::payload_bytes * slot_units_; }
  /// The place of message `sequence` in a ring: one multiplication of 32 bits and an addition.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* slot_of(machine::PacketPair* ring,
                                                                 std::uint32_t sequence) const {
    const std::uint32_t stride = Protocol::unit_bytes * slot_units_;
    return reinterpret_cast<machine::PacketPair*>(reinterpret_cast<std::byte*>(ring) +
                                                  std::uint64_t{sequence & (depth_ - 1)} * stride);
  }
  /// An empty message has a unit, too.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t units_for(std::uint32_t bytes) {
    return bytes == 0 ? 1 : (bytes + Protocol::payload_bytes - 1) / Protocol::payload_bytes;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t half_lap() const { return depth_ / 2; }

  /// Moves a message of more than one slot with `move(done, part)`. One that is interrupted leaves its `progress`,
  /// where the next call goes on.
  template <class Move>
  BEELINE_HOST_DEVICE Status in_parts(std::uint64_t& progress, std::size_t bytes, const Move& move) {
    const std::size_t begun = progress;
    group_.sync();  // every thread has read it
    for (std::size_t done = begun; done < bytes;) {
      const std::size_t rest = bytes - done;
      const std::uint32_t part = rest < slot_bytes() ? static_cast<std::uint32_t>(rest) : slot_bytes();
      if (const Status status = move(done, part); status != Status::ok) return leave(progress, done, status);
      done += part;
    }
    return begun == 0 ? Status::ok : leave(progress, 0, Status::ok);
  }
  BEELINE_HOST_DEVICE Status leave(std::uint64_t& progress, std::size_t done, Status status) {
    if (group_.thread_rank() == 0) progress = done;
    group_.sync();  // the next message of many slots finds it
    return status;
  }

  /// All threads decide the same: `credit_` follows from the sequence, not from what a thread has observed.
  BEELINE_HOST_DEVICE Status renew_credit(Timeout timeout) {
    const std::uint32_t needed = sent_ + 1 - depth_;
    const Awaited awaited{Operation::packet_send, peer_, sent_ + 1, needed};
    const Status status = detail::await_consumed(group_, ctx_, awaited, timeout, &state_->consumed);
    // Credits come back at multiples of half a lap only, so that `needed` of them means all up to the next multiple.
    if (status == Status::ok) credit_ = (needed + half_lap() - 1) & ~(half_lap() - 1);
    return status;
  }

  /// Sends message `sent_` + 1, then makes ready what the next one needs, while this one travels.
  BEELINE_HOST_DEVICE Status send_slot(const std::byte* source, std::uint32_t bytes, Timeout timeout) {
    if (sent_ - credit_ == depth_) [[unlikely]]
      if (const Status status = renew_credit(timeout); status != Status::ok) return status;
    Protocol::write(group_, sent_ + 1, detail::OutgoingMessage{out_slot_, source, bytes},
                    rewrites_slot_ ? slot_units_ : units_for(bytes));
    ++sent_;
    prepare_slot();
    // Credits are looked for when they are due, not when they are used up: this message travels meanwhile.
    if (sent_ - credit_ == depth_) [[unlikely]]
      static_cast<void>(renew_credit(Timeout::test()));
    return Status::ok;
  }
  BEELINE_HOST_DEVICE void prepare_slot() {
    out_slot_ = slot_of(out_, sent_ + 1);
    rewrites_slot_ = ((sent_ + 1) & (detail::packet_sweep_period - 1)) < depth_;
  }

  BEELINE_HOST_DEVICE Status read_slot(std::byte* destination, std::uint32_t bytes, Timeout timeout) {
    if (owes_credit_) [[unlikely]]
      return_credit();
    const std::uint32_t sequence = received_ + 1;
    const Awaited awaited{Operation::packet_receive, peer_, sequence, sequence, Compare::equal};
    const Status mine =
        Protocol::read(group_, ctx_, awaited, timeout,
                       detail::IncomingMessage{slot_of(in_, sequence), destination, bytes}, units_for(bytes));
    const Status status = agree(group_, mine);  // in one place of the code: it may be a barrier
    if (status == Status::ok) consume(sequence);
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
      detail::SystemAtomic<std::uint32_t>(*credit_word_).store(received_, std::memory_order_release);
    owes_credit_ = false;
  }

  Group group_;
  const Context& ctx_;
  std::uint32_t peer_, depth_, slot_units_;
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
