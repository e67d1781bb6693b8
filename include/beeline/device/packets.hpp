// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Packets: one store carries data and flag, so that no fence is needed before the flag. This gives the lowest latency.
/// In the protocol LL (device/impl/ll.hpp) a packet has 8 bytes, of which the flag takes 4. In LL128
/// (device/impl/ll128.hpp) it has 128 bytes, of which the flag takes 8; only GPUs store that much at once.
///
/// The flag is the message's sequence number, which has 32 bits. A slot of the ring still holds flags of earlier laps.
/// Every 2^30 messages the sender rewrites whole slots, so that after the sequence wraps no old flag is mistaken for a
/// new one.
///
/// For peers on other nodes the engine carries the messages (device/impl/packets_by_engine.hpp).

#include <cstddef>
#include <cstdint>

#include "beeline/device/impl/caller_check.hpp"
#include "beeline/device/impl/ll128.hpp"

namespace beeline {

/// One rank's state towards one peer, in symmetric memory. Sequences wrap at 2^32.
struct alignas(128) PacketState {
  std::uint32_t sent, received;              ///< sequence of the last message in each direction
  std::uint32_t credit;                      ///< number of this rank's messages that the peer had unpacked when
                                             ///< `consumed` was last read
  std::uint64_t sent_bytes, received_bytes;  ///< progress of a message that a time-out interrupted
  alignas(64) std::uint32_t consumed;  ///< written by the peer: number of this rank's messages that it has unpacked
};

/// A symmetric set of rings, one from each rank to each other rank, made by `ProtocolRings`. Passed by value.
template <class Protocol>
struct ProtocolChannel {
  machine::PacketPair* rings;  ///< [ranks, depth, slot_units, Protocol::unit_bytes] at the receiver
  PacketState* states;         ///< [ranks]
  std::uint32_t depth;         ///< messages in flight at most: a power of two, at least 2
  std::uint32_t slot_units;    ///< units of a slot, with `Protocol::payload_bytes` of payload each
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t slot_bytes() const {
    return std::size_t{Protocol::payload_bytes} * slot_units;
  }
};
using PacketChannel = ProtocolChannel<LL>;
using LL128Channel = ProtocolChannel<LL128>;

namespace detail {

/// Whole slots are rewritten when the sequence passes a multiple of this.
inline constexpr std::uint32_t packet_sweep_period = std::uint32_t{1} << 30;

/// Waits until the receiver has unpacked message `awaited.expected`. Called once or twice a lap, so it is out of line.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status await_consumed(Group group, const Context& ctx, Awaited awaited,
                                                       Timeout timeout, std::uint32_t* consumed) {
  const auto needed = static_cast<std::uint32_t>(awaited.expected);
  // Acquire: the slot may be overwritten only after the receiver has read it.
  const Status status = await_word(
      ctx, awaited, timeout, SystemAtomic<std::uint32_t>(*consumed), Order::memory, [needed](std::uint64_t observed) {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(observed) - needed) >= 0;
      });
  return agree(group, status);
}

}  // namespace detail

}  // namespace beeline

#include "beeline/device/impl/packets_by_engine.hpp"

namespace beeline {

inline namespace BEELINE_CALLS {

/// One rank's end of the channel to `peer`, opened by one group (for LL128 a warp or a block of whole warps); sequence
/// numbers are in its registers while it is open, and in memory for the next port. At most one group of a rank sends to
/// a peer at a time, and at most one receives from it.
///
/// Its arithmetic has 32 bits, since every instruction between a flag's arrival and the answer adds latency.
template <class Group, class Protocol = LL>
class PacketPort {
  static_assert(Protocol::threads == 1 || !std::is_same_v<Group, Thread>, "lines are stored by whole warps");

 public:
  /// Every thread of `group` calls it. Stops the caller at a peer outside the team or a partial warp: see access.hpp.
  BEELINE_HOST_DEVICE PacketPort(const Group& group, const Context& ctx, const ProtocolChannel<Protocol>& channel,
                                 std::uint32_t peer)
      : group_(group), ctx_(ctx), peer_(detail::checked_peer(ctx, Operation::packet_send, peer)), depth_(channel.depth),
        slot_units_(channel.slot_units), state_(&channel.states[peer]),
        credit_word_(&ctx.translate(&channel.states[ctx.rank], peer)->consumed),
        out_(ctx.translate(ring_of(channel, ctx.rank), peer)), in_(ring_of(channel, peer)) {
    if (detail::checks_operations && detail::executor == DeviceKind::gpu && group.size() % Protocol::threads != 0)
      detail::stop_call(ctx, Operation::packet_send, peer, {CallFault::partial_warp, 32, group.size()});
    group_.sync();  // the sequence numbers that an earlier port of this group wrote are visible
    first_sent_ = sent_ = state_->sent, first_received_ = received_ = state_->received, credit_ = state_->credit;
    if (ctx.has_routes != 0) [[unlikely]]
      if (ctx.access_to(peer).access != PeerAccess::direct) use_engine();
    prepare_slot();
    group_.sync();  // every thread has read the state before thread 0 changes it
  }
  /// Writes the sequence numbers to memory for the next port, but only those of the directions in use, since a group
  /// may have one port to send and another to receive.
  BEELINE_HOST_DEVICE ~PacketPort() {
    return_credit();
    if (group_.thread_rank() != 0) return;
    if (sent_ != first_sent_) state_->sent = sent_, state_->credit = credit_;
    if (received_ != first_received_) state_->received = received_;
  }
  PacketPort(const PacketPort&) = delete;
  PacketPort& operator=(const PacketPort&) = delete;

  /// Sends a message of `bytes` from local `source`, of any alignment; a message longer than a slot takes several
  /// slots. `source` may be reused on return. Blocks only while the receiver is at least `depth` / 2 messages behind.
  /// Every thread of the group calls it, and gets the same status: ok, timeout, deadline, aborted.
  [[nodiscard]] BEELINE_HOST_DEVICE Status send(const void* source, std::size_t bytes,
                                                Timeout timeout = Timeout::none()) {
    const auto* from = static_cast<const std::byte*>(source);
    if (bytes > slot_bytes()) [[unlikely]]
      return in_parts(state_->sent_bytes, bytes,
                      [&](std::size_t done, std::uint32_t part) { return send_slot(from + done, part, timeout); });
    return send_slot(from, static_cast<std::uint32_t>(bytes), timeout);
  }

  /// Receives a message into local `destination`, of any alignment. `bytes` is the length that the sender has passed.
  /// Blocks until the message has arrived; on return it is visible to the whole group. Every thread of the group calls
  /// it, and gets the same status: ok, timeout, deadline, aborted.
  [[nodiscard]] BEELINE_HOST_DEVICE Status receive(void* destination, std::size_t bytes,
                                                   Timeout timeout = Timeout::none()) {
    auto* to = static_cast<std::byte*>(destination);
    if (bytes > slot_bytes()) [[unlikely]]
      return in_parts(state_->received_bytes, bytes,
                      [&](std::size_t done, std::uint32_t part) { return read_slot(to + done, part, timeout); });
    return read_slot(to, static_cast<std::uint32_t>(bytes), timeout);
  }

 private:
  /// The ring of messages from `from`.
  [[nodiscard]] BEELINE_HOST_DEVICE static machine::PacketPair* ring_of(const ProtocolChannel<Protocol>& channel,
                                                                        std::uint32_t from) {
    constexpr std::size_t pairs = Protocol::unit_bytes / sizeof(machine::PacketPair);
    return channel.rings + pairs * from * channel.depth * channel.slot_units;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t slot_bytes() const { return Protocol::payload_bytes * slot_units_; }
  /// The slot of message `sequence` in a ring: one 32-bit multiplication and one addition.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* slot_of(machine::PacketPair* ring,
                                                                 std::uint32_t sequence) const {
    const std::uint32_t stride = Protocol::unit_bytes * slot_units_;
    return reinterpret_cast<machine::PacketPair*>(reinterpret_cast<std::byte*>(ring) +
                                                  std::uint64_t{sequence & (depth_ - 1)} * stride);
  }
  /// An empty message also takes one unit.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t units_for(std::uint32_t bytes) {
    return bytes == 0 ? 1 : (bytes + Protocol::payload_bytes - 1) / Protocol::payload_bytes;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t half_lap() const { return depth_ / 2; }

  /// Moves a message of more than one slot with `move(done, part)`. If a time-out interrupts it, `progress` says where
  /// the next call continues.
  template <class Move>
  BEELINE_HOST_DEVICE Status in_parts(std::uint64_t& progress, std::size_t bytes, const Move& move) {
    const std::size_t begun = progress;
    group_.sync();  // every thread has read `progress`
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
    group_.sync();  // the next message of several slots reads `progress`
    return status;
  }

  /// All threads get the same `credit_`, since it is computed from the sequence, not from the value that a thread has
  /// observed.
  BEELINE_HOST_DEVICE Status renew_credit(Timeout timeout) {
    const std::uint32_t needed = sent_ + 1 - depth_;
    const Awaited awaited{Operation::packet_send, peer_, sent_ + 1, needed};
    const Status status = detail::await_consumed(group_, ctx_, awaited, timeout, &state_->consumed);
    // The receiver returns credits only at multiples of half a lap, so `needed` credits imply all credits up to the
    // next multiple.
    if (status == Status::ok) credit_ = (needed + half_lap() - 1) & ~(half_lap() - 1);
    return status;
  }

  /// Sends message `sent_` + 1, then prepares the slot of the next message while this one travels.
  BEELINE_HOST_DEVICE Status send_slot(const std::byte* source, std::uint32_t bytes, Timeout timeout) {
    if (sent_ - credit_ == depth_) [[unlikely]] {
      if (uses_engine()) {
        const Awaited awaited{Operation::packet_send, peer_, sent_ + 1, sent_ + 1 - depth_};
        const Status status = detail::send_by_engine(group_, ctx_, remote(), awaited, source, bytes, timeout);
        if (status == Status::ok) ++sent_, ++credit_;
        return status;
      }
      if (const Status status = renew_credit(timeout); status != Status::ok) return status;
    }
    Protocol::write(group_, sent_ + 1, detail::OutgoingMessage{out_slot_, source, bytes},
                    rewrites_slot_ ? slot_units_ : units_for(bytes));
    ++sent_;
    prepare_slot();
    // Reads the credits as soon as they are due, while this message travels, not when the next message needs them.
    if (sent_ - credit_ == depth_) [[unlikely]]
      static_cast<void>(renew_credit(Timeout::test()));
    return Status::ok;
  }
  /// Prepares for a peer that only the engine reaches. Every message then takes the rare branches of `send_slot` and
  /// `read_slot`, which the port has in any case: others pay nothing for these peers.
  BEELINE_HOST_DEVICE void use_engine() {
    credit_word_ = nullptr;
    credit_ = sent_ - depth_;
    owes_credit_ = true;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool uses_engine() const { return credit_word_ == nullptr; }
  [[nodiscard]] BEELINE_HOST_DEVICE detail::RemotePackets<PacketState> remote() const {
    return {state_ - peer_, ctx_.size, depth_, Protocol::unit_bytes * slot_units_};
  }
  BEELINE_HOST_DEVICE void prepare_slot() {
    out_slot_ = slot_of(out_, sent_ + 1);
    rewrites_slot_ = ((sent_ + 1) & (detail::packet_sweep_period - 1)) < depth_;
  }

  BEELINE_HOST_DEVICE Status read_slot(std::byte* destination, std::uint32_t bytes, Timeout timeout) {
    if (owes_credit_) [[unlikely]] {
      if (uses_engine()) {
        const Awaited awaited{Operation::packet_receive, peer_, received_ + 1, received_ + 1, Compare::equal};
        const Status status = detail::receive_by_engine(group_, ctx_, remote(), awaited, destination, bytes, timeout);
        if (status == Status::ok) ++received_;
        return status;
      }
      return_credit();
    }
    const std::uint32_t sequence = received_ + 1;
    const Awaited awaited{Operation::packet_receive, peer_, sequence, sequence, Compare::equal};
    const Status mine =
        Protocol::read(group_, ctx_, awaited, timeout,
                       detail::IncomingMessage{slot_of(in_, sequence), destination, bytes}, units_for(bytes));
    const Status status = agree(group_, mine);  // called in one place only, since it may be a barrier
    if (status == Status::ok) consume(sequence);
    return status;
  }

  /// Credits are due twice a lap: often enough to keep the sender going, rarely enough for their release to be cheap.
  /// The receiver returns credits when it receives the next message, whose travel time hides the cost of the release.
  BEELINE_HOST_DEVICE void consume(std::uint32_t sequence) {
    received_ = sequence;
    owes_credit_ = (sequence & (half_lap() - 1)) == 0;
  }
  BEELINE_HOST_DEVICE void return_credit() {
    if (owes_credit_ && group_.thread_rank() == 0 && !uses_engine())
      detail::SystemAtomic<std::uint32_t>(*credit_word_).store(received_, std::memory_order_release);
    owes_credit_ = false;
  }

  Group group_;
  const Context& ctx_;
  std::uint32_t peer_, depth_, slot_units_;
  PacketState* state_;
  std::uint32_t* credit_word_;  ///< at the peer; nullptr: only the engine reaches the peer
  machine::PacketPair* out_;
  machine::PacketPair* in_;
  std::uint32_t sent_ = 0, received_ = 0, credit_ = 0, first_sent_ = 0, first_received_ = 0;
  machine::PacketPair* out_slot_ = nullptr;  ///< slot of message `sent_` + 1
  bool rewrites_slot_ = false;               ///< whether that message rewrites its whole slot
  bool owes_credit_ = false;                 ///< whether message `received_` is the last of half a lap
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
