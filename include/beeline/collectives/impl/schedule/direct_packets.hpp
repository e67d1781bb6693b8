// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Exchanges in packets: rounds of as much of every piece as an area holds.

#include "beeline/collectives/impl/movement_handshake.hpp"

namespace beeline::detail {

/// Words of the longest part that one side of this round has.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t words_of_part(std::size_t bytes, std::size_t done,
                                                                     std::size_t most) {
  return static_cast<std::uint32_t>(words_of<std::byte>(Piece<std::byte>{nullptr, bytes}.part(done, most).bytes));
}

/// One round: the bytes from `done` on of every piece. The threads share words of all peers, so that a thread waits for
/// few of them one after the other.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status packet_round(Session<Group>& session, const MovementPlan& plan,
                                                                     std::size_t longest, std::size_t done,
                                                                     Timeout timeout) {
  const Context& ctx = session.context();
  const std::uint32_t thread = session.group().thread_rank(), threads = session.group().size();
  const std::size_t most = std::size_t{8} * session.area_words();
  bool is_new = false;
  if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
  const std::uint32_t width = words_of_part(longest, done, most), all = width * (ctx.size - 1);
  BEELINE_NO_UNROLL
  for (std::uint32_t k = thread; is_new && k < all; k += threads) {
    const std::uint32_t peer = peer_ahead(ctx, 1 + k / width), i = k % width;
    const Piece<const std::byte> piece = plan.outgoing(ctx, peer).part(done, most);
    if (std::size_t{8} * i < piece.bytes) session.send_word(peer, i, load_word(piece.at, i, piece.bytes));
  }
  if (is_new && done == 0) copy_own_piece(session.group(), OwnPiece(ctx, plan));
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (std::uint32_t k = thread; k < all && status == Status::ok; k += threads) {
    const std::uint32_t peer = peer_ahead(ctx, 1 + k / width), i = k % width;
    const Piece<std::byte> piece = plan.incoming(ctx, peer).part(done, most);
    if (std::size_t{8} * i >= piece.bytes) continue;
    std::uint64_t word[1] = {};
    status = session.receive_words(peer, i, word, timeout);
    if (status == Status::ok) store_word(piece.at, i, piece.bytes, word[0]);
  }
  // Where some send nothing to some, who has received all does not know that all have come.
  return plan.is_full() && !plan.varies() ? session.finish(status) : session.finish_one_way(status);
}

/// Exchange of any size. Where pieces differ in length, a first round finds the number of the others.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status move_packets(Session<Group>& session, const MovementPlan& plan,
                                                                     Timeout timeout) {
  const std::size_t most = std::size_t{8} * session.area_words();
  if (session.stage() == 0) {
    std::size_t longest = plan.bytes;
    if (plan.varies()) {
      bool outside = false;
      if (const Status status = tell_places(session, plan, timeout, outside); status != Status::ok) return status;
      longest = longest_of_all(session);
    }
    session.set_stage(static_cast<std::uint32_t>(1 + (longest + most - 1) / most));
    if (longest == 0) copy_own_piece(session.group(), OwnPiece(session.context(), plan));
  }
  const std::size_t rounds = session.stage() - 1;
  for (std::size_t round = session.offset(); round < rounds; ++round) {
    // A round's width only shares out work: where lengths differ, the session's own longest is not known here.
    const std::size_t longest = plan.varies() ? rounds * most : plan.bytes;
    if (const Status status = packet_round(session, plan, longest, round * most, timeout); status != Status::ok)
      return status;
    session.set_offset(round + 1);
  }
  session.group().sync();  // the whole result is there
  session.set_stage(0);
  session.set_offset(0);
  return Status::ok;
}

}  // namespace beeline::detail
