// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Exchanges of pieces whose lengths differ from peer to peer. Members tell each other lengths and places before
/// anything is stored; short pieces go along in that round, and where all are short, it is the only one.

#include "beeline/collectives/exchange_peer.hpp"

namespace beeline::detail {

/// Bytes of the longest piece, of a lane's slice, that goes along: a word for each thread of a block.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE std::size_t short_piece_bytes(const Lane<Group>& lane) {
  constexpr std::size_t most = 4096;
  const std::size_t room = std::size_t{8} * (lane.area_words() - told_words);
  return room < most ? room : most;
}

/// Sends the pieces of `plan` that are short, behind the words that were told.
template <class Group>
BEELINE_HOST_DEVICE void send_short_pieces(const Lane<Group>& lane, const ExchangePlan& plan) {
  const Context& ctx = lane.context();
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 1; step < ctx.size; ++step) {
    const std::uint32_t peer = peer_ahead(ctx, step);
    const Piece<const std::byte> piece = plan.outgoing(ctx, peer);
    for (std::uint32_t i = lane.group().thread_rank(); std::size_t{8} * i < piece.bytes; i += lane.group().size())
      lane.send_word(peer, told_words + i, load_word(piece.at, i, piece.bytes));
  }
}

/// Receives them. Their senders have told that they are as long as `plan` says. Returns this thread's status.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status receive_short_pieces(const Lane<Group>& lane, const ExchangePlan& plan,
                                                              Timeout timeout) {
  const Context& ctx = lane.context();
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 1; step < ctx.size; ++step) {
    const std::uint32_t peer = peer_ahead(ctx, step);
    const Piece<std::byte> piece = plan.incoming(ctx, peer);
    for (std::uint32_t i = lane.group().thread_rank(); std::size_t{8} * i < piece.bytes; i += lane.group().size()) {
      std::uint64_t word[1] = {};
      if (const Status status = lane.receive_words(peer, told_words + i, word, timeout); status != Status::ok)
        return status;
      store_word(piece.at, i, piece.bytes, word[0]);
    }
  }
  return Status::ok;
}

/// The round in which all tell all, with the short pieces.
///   heard  set to what all need
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status tell_with_short_pieces(Lane<Group>& lane, const ExchangePlan& plan,
                                                                Timeout timeout, HeardNeeds& heard) {
  const Context& ctx = lane.context();
  const ExchangePlan short_plan = plan.only_short(short_piece_bytes(lane));
  bool is_new = false;
  if (const Status status = lane.enter(timeout, is_new); status != Status::ok) return status;
  if (is_new) {
    const ToldPlaces tell(ctx, plan);
    tell_all(lane, tell.words(), tell);
    send_short_pieces(lane, short_plan);
    copy_own_piece(lane.group(), OwnPiece(ctx, short_plan));
  }
  const auto hear = [&heard](std::uint32_t peer, std::uint32_t what, std::uint64_t theirs) {
    return heard(peer, what, theirs);
  };
  // Who sends another length than is expected is found before its words are waited for.
  Status status = agree(lane.group(), hear_all(lane, told_words, timeout, hear));
  if (status == Status::ok) status = receive_short_pieces(lane, short_plan, timeout);
  return lane.finish(status);
}

/// Exchange of any sizes.
template <class Group, class Mover>
[[nodiscard]] BEELINE_HOST_DEVICE Status exchange_varied(Lane<Group>& lane, const ExchangePlan& plan, Mover& mover,
                                                         Timeout timeout) {
  const std::size_t most = short_piece_bytes(lane);
  const ExchangePlan long_plan = plan.without_short(most);
  if (lane.stage() == 0) {
    HeardNeeds heard(lane.context(), plan);
    if (const Status status = tell_with_short_pieces(lane, plan, timeout, heard); status != Status::ok) return status;
    if (!lane.group().any(heard.longest > most)) {
      copy_own_piece(lane.group(), OwnPiece(lane.context(), long_plan));
      lane.note(Transfer::packets);
      lane.group().sync();  // the whole result is there
      return Status::ok;
    }
    acquire_words(lane, told_words);  // now the others' memory is written, too
    begin_direct(lane, long_plan, mover, lane.group().any(heard.outside));
  }
  return end_direct(lane, long_plan, mover, timeout);
}

}  // namespace beeline::detail
