// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Relay: movements in which one member sends: the others fetch from it; or, where they all get the same, each gets a
/// part, which it passes on to the others, so that the sender's link carries the vector once.

#include "beeline/collectives/impl/movement_handshake.hpp"
#include "beeline/collectives/impl/protocol/signal.hpp"

namespace beeline::detail {

/// Where a movement stands behind the telling of places: what is stored in place lacks only the others' word that they
/// have done so, too; what goes from member to member has stages of its own; above are chunks through the channel's
/// memory, one more than their number.
enum DirectStage : std::uint32_t { stored = 1, relaying = ~std::uint32_t{0} };

/// How a broadcast's slice is cut into chunks, and those into a part for each member that receives.
class Relay {
 public:
  BEELINE_HOST_DEVICE Relay(const Context& ctx, const MovementPlan& plan)
      : ctx_(ctx), plan_(plan), each_(chunk_of(plan.bytes)) {}

  static constexpr selection::RelaySizes sizes =
      executor == DeviceKind::gpu ? selection::relay_of_gpus : selection::relay_of_hosts;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t chunks() const {
    return static_cast<std::uint32_t>((plan_.bytes + each_ - 1) / each_);
  }

  /// The sender's: stores the parts of a chunk to those who are to pass them on. `rounds` ago the places were told.
  template <class Group>
  BEELINE_HOST_DEVICE void send(const Session<Group>& session, std::uint32_t chunk, std::uint32_t rounds) const {
    BEELINE_NO_UNROLL
    for (std::uint32_t step = 1; step < ctx_.size; ++step) {
      const std::uint32_t peer = peer_ahead(ctx_, step);
      put(session, place_of(session, peer, rounds), plan_.source, part(chunk, peer), peer);
    }
  }
  /// What stays there of it.
  template <class Group>
  BEELINE_HOST_DEVICE void keep(const Session<Group>& session, std::uint32_t chunk) const {
    const std::size_t first = chunk * each_;
    if (plan_.source != plan_.destination)
      copy_bytes(session.group(), plan_.destination + first, plan_.source + first, bytes_of_chunk(chunk));
  }

  /// A receiver's: stores its part of a chunk to the other receivers.
  template <class Group>
  BEELINE_HOST_DEVICE void pass_on(const Session<Group>& session, std::uint32_t chunk, std::uint32_t rounds) const {
    const Range mine = part(chunk, ctx_.rank);
    BEELINE_NO_UNROLL
    for (std::uint32_t step = 1; step < ctx_.size; ++step)
      if (const std::uint32_t peer = peer_ahead(ctx_, step); peer != plan_.sender)
        put(session, place_of(session, peer, rounds), plan_.destination, mine, peer);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE static std::size_t chunk_of(std::size_t bytes) {
    const std::size_t wanted = (bytes / 4 + 15) & ~std::size_t{15};  // some, so that all have work
    return wanted < sizes.least ? sizes.least : wanted < sizes.most_chunk ? wanted : sizes.most_chunk;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t bytes_of_chunk(std::uint32_t chunk) const {
    const std::size_t rest = plan_.bytes - chunk * each_;
    return rest < each_ ? rest : each_;
  }
  /// Bytes of the slice that `member` passes on.
  [[nodiscard]] BEELINE_HOST_DEVICE Range part(std::uint32_t chunk, std::uint32_t member) const {
    const std::uint32_t index = member < plan_.sender ? member : member - 1;
    const Range mine = part_of(bytes_of_chunk(chunk), ctx_.size - 1, index, 16);
    return {chunk * each_ + mine.first, mine.count};
  }
  template <class Group>
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* place_of(const Session<Group>& session, std::uint32_t peer,
                                                        std::uint32_t rounds) const {
    return own_slot(ctx_) + session.heard_word(peer, told_place, rounds);
  }
  template <class Group>
  BEELINE_HOST_DEVICE void put(const Session<Group>& session, std::byte* to, const std::byte* from, const Range& range,
                               std::uint32_t peer) const {
    copy_bytes(session.group(), ctx_.translate(to + range.first, peer), from + range.first, range.count);
  }

  const Context& ctx_;
  const MovementPlan& plan_;
  std::size_t each_;
};

/// Begins, unless the sender stores what it sends.
///   outside  whether a piece is to lie outside its member's slot
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE bool begin_from_sender(Session<Group>& session, const MovementPlan& plan,
                                                         bool outside) {
  const Context& ctx = session.context();
  const bool all_alike = plan.call.operation == Operation::broadcast && ctx.size > 2;
  const bool relays = all_alike && !outside && plan.bytes >= Relay::sizes.least;
  const std::uint64_t place = session.heard_word(plan.sender, told_place, 0);
  if (!relays && place == no_place) return false;
  session.note(transfer_at(ctx, plan, relays ? place_in_slot(ctx, plan.destination) : place));
  session.set_stage(relays ? DirectStage::relaying : DirectStage::stored);
  if (relays) return true;
  if (ctx.rank == plan.sender)
    copy_own_piece(session.group(), OwnPiece(ctx, plan));
  else
    copy_bytes(session.group(), plan.incoming(ctx, plan.sender).at, ctx.translate(own_slot(ctx) + place, plan.sender),
               plan.bytes);
  return true;
}

/// A chunk a round: members pass on what they have of it as soon as the sender says that it is there.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status relay_pieces(Session<Group>& session, const MovementPlan& plan,
                                                      Timeout timeout) {
  const bool sends = session.context().rank == plan.sender;
  const Relay relay(session.context(), plan);
  for (auto chunk = static_cast<std::uint32_t>(session.offset()); chunk < relay.chunks(); session.set_offset(++chunk)) {
    if (sends) relay.send(session, chunk, chunk);
    if (const Status status = session.follow(plan.sender, timeout); status != Status::ok) return status;
    sends ? relay.keep(session, chunk) : relay.pass_on(session, chunk, chunk + 1);
  }
  session.set_offset(0);
  session.set_stage(DirectStage::stored);
  return Status::ok;
}

}  // namespace beeline::detail
