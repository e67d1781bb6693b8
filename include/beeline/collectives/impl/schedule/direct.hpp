// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Direct: each piece of a movement goes from its sender to its receiver. In packets, each round moves as much of every
/// piece as an area holds. Otherwise pieces are stored into the peers' memory, by the calling threads or in bulk.

#include "beeline/collectives/impl/drawn_pieces.hpp"
#include "beeline/collectives/impl/protocol/ll.hpp"
#include "beeline/collectives/impl/protocol/ll128.hpp"
#include "beeline/collectives/impl/schedule/pushed_movement.hpp"
#include "beeline/collectives/impl/schedule/relay.hpp"
#include "beeline/collectives/impl/schedule/staged.hpp"

namespace beeline::detail {

/// The parts of all outgoing (or incoming) pieces in one round: bytes from `done` on.
template <class Round, bool outgoing>
class RoundPieces {
  using Byte = std::conditional_t<outgoing, const std::byte, std::byte>;
  using Vector = typename Round::template Vector<Byte>;
  using Units = UnitParts<Round::unit_words>;

 public:
  /// `some`: bytes of the longest part.
  BEELINE_HOST_DEVICE RoundPieces(const Context& ctx, const MovementPlan& plan, std::size_t done, std::size_t some)
      : ctx_(ctx), plan_(plan), done_(done), some_(some) {}

  [[nodiscard]] BEELINE_HOST_DEVICE VectorPart<Vector> of(std::uint32_t peer) const {
    const Piece<Byte> piece = piece_of(peer).part(done_, some_);
    const Vector vector(piece.at, static_cast<std::uint32_t>(piece.bytes));
    return {vector, 0, Units::units_of(vector.words())};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t most() const {
    return Units::units_of(static_cast<std::uint32_t>(words_of<std::byte>(some_)));
  }
  /// Number of units that are whole in every piece.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t whole_units() const { return 0; }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE auto piece_of(std::uint32_t peer) const {
    if constexpr (outgoing)
      return plan_.outgoing(ctx_, peer);
    else
      return plan_.incoming(ctx_, peer);
  }
  const Context& ctx_;
  const MovementPlan& plan_;
  std::size_t done_, some_;
};

/// As `RoundPieces`, for pieces of equal length that all members send to all members: each unit needs fewer
/// computations.
template <class Round, bool outgoing>
class EqualPieces {
  using Byte = std::conditional_t<outgoing, const std::byte, std::byte>;
  using Vector = typename Round::template Vector<Byte>;
  using Units = UnitParts<Round::unit_words>;

 public:
  BEELINE_HOST_DEVICE EqualPieces(const Context&, const MovementPlan& plan, std::size_t done, std::size_t some)
      : first_(vector_of(plan) + done, static_cast<std::uint32_t>(some),
               outgoing ? plan.send_step : plan.receive_step) {}

  [[nodiscard]] BEELINE_HOST_DEVICE VectorPart<Vector> of(std::uint32_t peer) const {
    return {first_.at(peer), 0, most()};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t most() const { return Units::units_of(first_.words()); }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t whole_units() const {
    return first_.whole_words() / Round::unit_words;
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE static Byte* vector_of(const MovementPlan& plan) {
    if constexpr (outgoing)
      return plan.source;
    else
      return plan.destination;
  }
  Vector first_;
};

/// One round: moves `some` bytes of every piece, from byte `done` on.
template <class Protocol, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status packet_round(Session<Group>& session, const MovementPlan& plan,
                                                                     std::size_t done, std::size_t some,
                                                                     Timeout timeout) {
  using Round = PacketRound<Protocol, Group>;
  using Sent = std::conditional_t<Round::any_pieces, RoundPieces<Round, true>, EqualPieces<Round, true>>;
  using Received = std::conditional_t<Round::any_pieces, RoundPieces<Round, false>, EqualPieces<Round, false>>;
  const Context& ctx = session.context();
  bool is_new = false;
  if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
  const Sent sent(ctx, plan, done, some);
  const Received received(ctx, plan, done, some);
  const auto with_round = [&](const auto& work) {
    if constexpr (Round::frequent_members != 0)
      if (ctx.size == Round::frequent_members)
        return work(PacketRound<Protocol, Group, Round::frequent_members>(session, timeout, is_new, false));
    return work(Round(session, timeout, is_new, false));
  };
  const std::uint32_t sent_whole = sent.whole_units(), received_whole = received.whole_units();
  const std::uint32_t whole = sent_whole < received_whole ? sent_whole : received_whole;
  if (is_new) {
    with_round([&](const auto& round) { round.send_pieces(sent, whole); });
    if constexpr (!Round::any_pieces)
      static_cast<void>(for_each_line(session.group(), sent.most(), whole, [&](const LinePlace& place, auto is_whole) {
        if (place.exists)
          received.of(ctx.rank).template store<is_whole()>(place, sent.of(ctx.rank).template load<is_whole()>(place));
        return Status::ok;
      }));
    else if (done == 0)
      copy_own_piece(session.group(), OwnPiece(ctx, plan));
  }
  const Status status = with_round([&](const auto& round) { return round.receive_pieces(received, whole); });
  // If some pieces are empty, a member that has received all its pieces does not know that every member has arrived.
  const bool all_send = !Round::any_pieces || (plan.is_full() && !plan.varies()) || all_speak(ctx);
  return all_send ? session.finish(status) : session.finish_one_way(status);
}

/// Movement of any size. If pieces differ in length, a first round finds the number of the following rounds. Returns
/// invalid_argument if the group cannot send such packets, or if they cannot carry such pieces.
template <class Protocol, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status move_packets(Session<Group>& session, const MovementPlan& plan,
                                                                     Timeout timeout) {
  using Round = PacketRound<Protocol, Group>;
  if (!Round::serves(session) || (!Round::any_pieces && (!plan.is_full() || plan.varies())))
    return Status::invalid_argument;
  if (const Status status = session.begin(plan.call); status != Status::ok) return status;
  const std::size_t most = std::size_t{8} * Round::unit_words * Round::area_units(session);
  std::size_t longest = plan.bytes;
  if constexpr (Round::any_pieces)
    if (plan.varies()) {
      if (session.stage() == 0) {
        bool outside = false;
        if (const Status status = tell_places(session, plan, timeout, outside); status != Status::ok) return status;
        const std::size_t all = longest_of_all(session);
        session.set_stage(static_cast<std::uint32_t>(1 + (all + most - 1) / most));
        if (all == 0) copy_own_piece(session.group(), OwnPiece(session.context(), plan));
      }
      longest = (session.stage() - 1) * most;  // the width of a round only distributes work
    }
  const Status result = in_rounds(session, longest, most, [&](std::size_t done, std::size_t some) {
    return packet_round<Protocol>(session, plan, done, some, timeout);
  });
  if (result != Status::ok) return result;
  session.group().sync();  // the whole result has arrived
  session.set_stage(0);
  return result;
}

/// Stores every piece to its destination.
template <class Group, class Stores>
BEELINE_HOST_DEVICE void put_pieces(const Session<Group>& session, const MovementPlan& plan, Stores& stores) {
  const Context& ctx = session.context();
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 1; step < ctx.size; ++step) {
    const std::uint32_t peer = peer_ahead(ctx, step);
    const Piece<const std::byte> piece = plan.outgoing(ctx, peer);
    if (piece.bytes != 0)
      stores.put(own_slot(ctx) + session.heard_word(peer, told_place, 0), piece.at, piece.bytes, peer);
  }
}

/// Stores all pieces, also this member's own, in chunks that are distributed to the grid's warps dynamically. So
/// multiprocessors with slower access to the peers do less, and the own piece is copied while the links are full. For
/// GPUs, with at most as many members as a warp has threads.
template <class Group>
BEELINE_HOST_DEVICE void put_drawn_pieces(const Session<Group>& session, const MovementPlan& plan) {
  constexpr std::size_t chunk = selection::drawn_chunk_bytes;
  const Context& ctx = session.context();
  const std::size_t sliced = plan.first_byte();
  const std::uint32_t lane = machine::lane(), block_warps = session.group().size() / 32;
  const auto index = static_cast<std::uint32_t>(plan.share.index), all = static_cast<std::uint32_t>(plan.share.count);
  const std::uint32_t blocks =
      ctx.size == 2 && all > selection::most_drawing_of_two ? selection::most_drawing_of_two : all;
  if (index >= blocks) return;
  const auto chunks = static_cast<std::uint32_t>((plan.whole_bytes + chunk - 1) / chunk);
  // A thread for each peer has the offset of the peer's piece.
  const std::uint64_t places =
      lane < ctx.size && lane != ctx.rank ? session.heard_word(lane, told_place, 0) - sliced : 0;
  DrawnPieces drawn(plan.tickets, index * block_warps + session.group().thread_rank() / 32, blocks * block_warps,
                    chunks * ctx.size);
  BEELINE_NO_UNROLL
  for (; drawn.any(); drawn.next()) {
    drawn.draw();
    const std::size_t done = drawn.piece() / ctx.size * chunk;
    const std::uint32_t peer = peer_ahead(ctx, drawn.piece() % ctx.size);
    const std::size_t bytes = plan.whole_bytes - done < chunk ? plan.whole_bytes - done : chunk;
    const std::byte* const from = plan.source + peer * plan.send_step - sliced + done;
    std::byte* const to = peer == ctx.rank
                              ? plan.destination + peer * plan.receive_step - sliced + done
                              : ctx.translate(own_slot(ctx) + machine::from_lane(places, peer) + done, peer);
    if (to != from) copy_bytes(Warp{}, to, from, bytes);
  }
}

/// Runs after the address exchange, before the next wait for a member.
template <class Group, class Stores>
BEELINE_HOST_DEVICE void begin_direct(Session<Group>& session, const MovementPlan& plan, Stores& stores, bool outside) {
  if constexpr (Stores::by_threads)
    if (plan.sender != no_peer && begin_from_sender(session, plan, outside)) return;
  const std::size_t most = staged_piece_bytes(session);
  const std::size_t chunks = outside ? (longest_of_all(session) + most - 1) / most : 0;
  const Context& ctx = session.context();
  const bool is_theirs = plan.receiver != no_peer && plan.receiver != ctx.rank;
  const std::uint64_t place =
      is_theirs ? session.heard_word(plan.receiver, told_place, 0) : place_in_slot(ctx, plan.destination);
  session.note(outside ? Transfer::staged : transfer_at(ctx, plan, place));
  session.set_stage(static_cast<std::uint32_t>(DirectStage::stored + chunks));
  if constexpr (executor == DeviceKind::gpu && Stores::by_threads)
    if (plan.tickets != nullptr && !outside) return put_drawn_pieces(session, plan);
  const OwnPiece own(ctx, plan);
  if (own.first) copy_own_piece(session.group(), own);
  if (!outside) put_pieces(session, plan, stores);
  if (!own.first) copy_own_piece(session.group(), own);
}

/// Completes a movement that has begun.
template <class Group, class Stores>
[[nodiscard]] BEELINE_HOST_DEVICE Status end_direct(Session<Group>& session, const MovementPlan& plan, Stores& stores,
                                                    Timeout timeout) {
  Status status = Status::ok;
  if constexpr (Stores::by_threads)
    if (session.stage() >= DirectStage::chaining) status = relay_pieces(session, plan, timeout);
  if (status != Status::ok) return status;
  status = session.stage() == DirectStage::stored ? session.barrier(Order::memory, timeout)
                                                  : move_staged(session, plan, stores, timeout);
  if (status != Status::ok) return status;
  session.group().sync();  // the whole result has arrived
  session.set_stage(0);
  session.set_offset(0);
  return Status::ok;
}

/// Movement of any size. If the destination of any piece is outside its member's slot, all pieces go through the
/// channel's memory. Between two GPUs a grid whose warps would otherwise take chunks dynamically then uses pushes.
template <class Group, class Stores>
[[nodiscard]] BEELINE_HOST_DEVICE Status move_direct(Session<Group>& session, const MovementPlan& plan, Stores& stores,
                                                     Timeout timeout) {
  if (session.stage() == 0) {
    bool outside = false;
    if (const Status status = tell_places(session, plan, timeout, outside); status != Status::ok) return status;
    if constexpr (executor == DeviceKind::gpu && Stores::by_threads)
      if (outside && plan.tickets != nullptr && session.context().size == 2)
        return move_by_pushes(session, plan, timeout);
    begin_direct(session, plan, stores, outside);
  }
  return end_direct(session, plan, stores, timeout);
}

}  // namespace beeline::detail
