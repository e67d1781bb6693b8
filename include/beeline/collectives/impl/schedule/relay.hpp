// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Relay: movements with one sender. The other members read from the sender; or, if all get the same vector, the
/// sender's link carries the vector once:
/// - in parts, in two steps: the sender stores a part of every chunk to each other member, which stores this part to
/// the remaining members;
/// - along a chain (GPUs, long vectors): each member passes every chunk on to the next member. A member then receives
/// from one member only. Bare kernels on four H100 reached 362 GB/s along a chain, and 349 GB/s in parts
/// (bench/records/NOTES.md).

#include "beeline/collectives/impl/movement_handshake.hpp"
#include "beeline/collectives/impl/places.hpp"
#include "beeline/collectives/impl/protocol/signal.hpp"

namespace beeline::detail {

/// Stage of a movement after the address exchange. `stored`: only the last barrier is left. `chaining`, `relaying`: a
/// broadcast goes from member to member. Other values: the number of chunks through the channel's memory, plus 1.
enum DirectStage : std::uint32_t { stored = 1, chaining = ~std::uint32_t{1}, relaying = ~std::uint32_t{0} };

/// Division of a broadcast's slice into chunks, and, unless the chunks go along a chain, of each chunk into a part for
/// each receiver.
class Relay {
 public:
  BEELINE_HOST_DEVICE Relay(const Context& ctx, const MovementPlan& plan, bool chains) : ctx_(ctx), plan_(plan) {
    constexpr auto parts = sizes.parts, chained = sizes.chained;
    each_ = chains ? chained.chunk_of(plan.bytes) : parts.chunk_of(plan.bytes);
  }

  static constexpr selection::RelaySizes sizes =
      executor == DeviceKind::gpu ? selection::relay_of_gpus : selection::relay_of_hosts;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t chunks() const {
    return static_cast<std::uint32_t>((plan_.bytes + each_ - 1) / each_);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool sends() const { return ctx_.rank == plan_.sender; }

  /// For the sender: stores the parts of a chunk to the members that relay them, and to its own destination. The
  /// address exchange was `rounds` rounds ago.
  template <class Group>
  BEELINE_HOST_DEVICE void send(const Session<Group>& session, std::uint32_t chunk, std::uint32_t rounds) const {
    for_receivers(session, rounds, [&](const Receivers& receivers) {
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < Places::most; ++k) {
        if (receivers.places[k] == nullptr) continue;
        const Range theirs = part(chunk, receivers.peers[k]);
        Places to;
        to.add(receivers.places[k] + theirs.first);
        if (plan_.source != plan_.destination) to.add(plan_.destination + theirs.first);
        to.copy(session.group(), plan_.source + theirs.first, theirs.count);
      }
    });
  }

  /// For a receiver: stores its part of a chunk to the other receivers.
  template <class Group>
  BEELINE_HOST_DEVICE void pass_on(const Session<Group>& session, std::uint32_t chunk, std::uint32_t rounds) const {
    const Range mine = part(chunk, ctx_.rank);
    for_receivers(session, rounds, [&](const Receivers& receivers) {
      Places to;
      BEELINE_UNROLL
      for (std::byte* const place : receivers.places)
        if (place != nullptr) to.add(place + mine.first);
      to.copy(session.group(), plan_.destination + mine.first, mine.count);
    });
  }

  // The neighbours in the chain, which begins with the sender and follows the order of ranks; `no_peer` if there is
  // none.

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t previous() const {
    return sends() ? no_peer : peer_ahead(ctx_, ctx_.size - 1);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t next() const {
    const std::uint32_t after = peer_ahead(ctx_, 1);
    return after == plan_.sender ? no_peer : after;
  }
  /// Stores a chunk to the next member; `place`: the start of that member's slice.
  template <class Group>
  BEELINE_HOST_DEVICE void hand_on(const Group& group, std::byte* place, std::uint32_t chunk) const {
    const std::size_t first = chunk * each_;
    Places to;
    if (next() != no_peer) to.add(place + first);
    if (sends() && plan_.source != plan_.destination) to.add(plan_.destination + first);
    to.copy(group, (sends() ? plan_.source : plan_.destination) + first, bytes_of_chunk(chunk));
  }
  /// The start of `peer`'s slice, as an address of this member.
  template <class Group>
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* place_of(const Session<Group>& session, std::uint32_t peer,
                                                        std::uint32_t rounds) const {
    return ctx_.translate(own_slot(ctx_) + session.heard_word(peer, told_place, rounds), peer);
  }

 private:
  /// Some of the members that receive from this member, with the addresses of their slices; nullptr: no member.
  struct Receivers {
    std::uint32_t peers[Places::most];
    std::byte* places[Places::most];
  };
  /// Calls `use` for all receivers in batches; the offsets of a batch are loaded together.
  template <class Group, class Use>
  BEELINE_HOST_DEVICE void for_receivers(const Session<Group>& session, std::uint32_t rounds, const Use& use) const {
    BEELINE_NO_UNROLL
    for (std::uint32_t step = 1; step < ctx_.size; step += Places::most) {
      Receivers receivers = {};
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < Places::most; ++k) {
        if (step + k >= ctx_.size) continue;
        const std::uint32_t peer = receivers.peers[k] = peer_ahead(ctx_, step + k);
        if (peer != plan_.sender) receivers.places[k] = place_of(session, peer, rounds);
      }
      use(receivers);
    }
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t bytes_of_chunk(std::uint32_t chunk) const {
    const std::size_t rest = plan_.bytes - chunk * each_;
    return rest < each_ ? rest : each_;
  }
  /// The part of a chunk that `member` passes on, as bytes of the slice.
  [[nodiscard]] BEELINE_HOST_DEVICE Range part(std::uint32_t chunk, std::uint32_t member) const {
    const std::uint32_t index = member < plan_.sender ? member : member - 1;
    const Range mine = part_of(bytes_of_chunk(chunk), ctx_.size - 1, index, 16);
    return {chunk * each_ + mine.first, mine.count};
  }

  const Context& ctx_;
  const MovementPlan& plan_;
  std::size_t each_;
};

/// Begins a movement in which receivers read or relay; returns false if the sender stores all pieces itself.
///   outside  whether the destination of a piece is outside its member's slot
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE bool begin_from_sender(Session<Group>& session, const MovementPlan& plan,
                                                         bool outside) {
  const Context& ctx = session.context();
  const bool all_alike = plan.call.operation == Operation::broadcast && ctx.size > 2;
  const bool relays = all_alike && !outside && plan.bytes >= Relay::sizes.least;
  const bool chains = relays && plan.whole_bytes >= Relay::sizes.least_chained;
  const std::uint64_t place = session.heard_word(plan.sender, told_place, 0);
  if (!relays && place == no_place) return false;
  session.note(transfer_at(ctx, plan, relays ? place_in_slot(ctx, plan.destination) : place));
  session.set_stage(chains ? DirectStage::chaining : relays ? DirectStage::relaying : DirectStage::stored);
  if (relays) return true;
  if (ctx.rank == plan.sender)
    copy_own_piece(session.group(), OwnPiece(ctx, plan));
  else
    copy_bytes(session.group(), plan.incoming(ctx, plan.sender).at, ctx.translate(own_slot(ctx) + place, plan.sender),
               plan.bytes);
  return true;
}

/// Moves a chunk in each round along the chain.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status hand_on_pieces(Session<Group>& session, const MovementPlan& plan,
                                                        Timeout timeout) {
  const Relay relay(session.context(), plan, true);
  auto chunk = static_cast<std::uint32_t>(session.offset());
  const std::uint32_t rounds = chunk + (session.has_entered() ? 1 : 0), next = relay.next();
  std::byte* const place = next == no_peer ? nullptr : relay.place_of(session, next, rounds);
  for (; chunk < relay.chunks(); session.set_offset(++chunk)) {
    const Status status =
        session.pass_on(relay.previous(), next, timeout, [&] { relay.hand_on(session.group(), place, chunk); });
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

/// Moves a chunk in each round: a member passes its part of a chunk on when the sender has signalled that the part is
/// stored.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status pass_on_parts(Session<Group>& session, const MovementPlan& plan,
                                                       Timeout timeout) {
  const Relay relay(session.context(), plan, false);
  for (auto chunk = static_cast<std::uint32_t>(session.offset()); chunk < relay.chunks(); session.set_offset(++chunk)) {
    if (relay.sends()) relay.send(session, chunk, chunk);
    if (const Status status = session.follow(plan.sender, timeout); status != Status::ok) return status;
    if (!relay.sends()) relay.pass_on(session, chunk, chunk + 1);
  }
  return Status::ok;
}

/// A broadcast from member to member: along a chain or in parts, depending on the stage.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status relay_pieces(Session<Group>& session, const MovementPlan& plan,
                                                      Timeout timeout) {
  const Status status = session.stage() == DirectStage::chaining ? hand_on_pieces(session, plan, timeout)
                                                                 : pass_on_parts(session, plan, timeout);
  if (status != Status::ok) return status;
  session.set_offset(0);
  session.set_stage(DirectStage::stored);
  return status;
}

}  // namespace beeline::detail
