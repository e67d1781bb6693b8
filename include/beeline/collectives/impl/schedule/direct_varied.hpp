// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Direct movement of pieces whose lengths differ from peer to peer. Members exchange lengths and offsets before
/// anything is stored. Short pieces are sent in the same round; if all pieces are short, it is the only round.

#include "beeline/collectives/impl/schedule/direct.hpp"

namespace beeline::detail {

/// The exchange of lengths and offsets, with the short pieces. Each thread handles some words of one peer, or, in small
/// groups, of a few peers, with few instructions, since each adds latency.
template <class Group>
class VariedRound {
 public:
  BEELINE_HOST_DEVICE VariedRound(Session<Group>& session, const MovementPlan& plan)
      : session_(session), plan_(plan), most_(short_bytes(session)) {}

  /// Largest size in bytes of a piece (of the session's slice) that is sent in this round.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t most() const { return most_; }

  /// Returns invalid_argument if a sent and an expected length differ.
  [[nodiscard]] BEELINE_HOST_DEVICE Status run(Timeout timeout) {
    bool is_new = false;
    if (const Status status = session_.enter(timeout, is_new); status != Status::ok) return status;
    if (is_new) send(own_needs());
    Status status = Status::ok;
    for_each_share([&](const Share& share) {
      if (status == Status::ok && share.first < told_words) status = hear(share, timeout);
    });
    // A member that sends another length than expected is detected before this member waits for its words.
    status = agree(session_.group(), status);
    for_each_share([&](const Share& share) {
      if (status == Status::ok && share.peer != ctx().rank) status = receive(share, timeout);
    });
    return session_.finish(status);
  }

  /// Whether this member's piece to itself is longer.
  [[nodiscard]] BEELINE_HOST_DEVICE bool keeps_long() const { return keeps_long_; }
  /// Whether any member gets a piece that was not sent in this round, and whether the destination of such a piece is
  /// outside its member's slot.
  [[nodiscard]] BEELINE_HOST_DEVICE bool leaves_any() const { return session_.group().any(heard_ != 0); }
  [[nodiscard]] BEELINE_HOST_DEVICE bool leaves_outside() const { return session_.group().any((heard_ & 1u) != 0); }

 private:
  /// Words `first`, `first + width`, ... of the data to and from a peer.
  struct Share {
    std::uint32_t peer, first, width;
  };
  template <class Use>
  BEELINE_HOST_DEVICE void for_each_share(const Use& use) const {
    const std::uint32_t threads = session_.group().size(), each = threads / ctx().size;
    const std::uint32_t width = each < told_words ? told_words : each;
    BEELINE_NO_UNROLL
    for (std::uint32_t i = session_.group().thread_rank(); i < ctx().size * width; i += threads)
      use(Share{i / width, i % width, width});
  }

  [[nodiscard]] BEELINE_HOST_DEVICE const Context& ctx() const { return session_.context(); }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::size_t short_bytes(const Session<Group>& session) {
    constexpr std::size_t most = 4096;  // a word for each thread of a block
    const std::size_t room = std::size_t{8} * (session.area_words() - told_words);
    return room < most ? room : most;
  }

  /// The word `told_needs` for the pieces that are not sent in this round; 0 if all are. Includes a `group.sync()`,
  /// which is needed before sending.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t own_needs() {
    bool is_long = false, keeps_long = false;
    for (std::uint32_t peer = session_.group().thread_rank(); peer < ctx().size; peer += session_.group().size()) {
      if (plan_.incoming(ctx(), peer).bytes > most_) (peer == ctx().rank ? keeps_long : is_long) = true;
    }
    keeps_long_ = session_.group().any(keeps_long);
    if (!session_.group().any(is_long)) return 0;
    const MovementPlan rest = plan_.without_short(most_);
    return ToldPlaces(ctx(), rest)(ctx().rank, told_needs);
  }

  BEELINE_HOST_DEVICE void send(std::uint64_t needs) {
    const bool has_worked = session_.has_worked();
    for_each_share([&](const Share& share) {
      const Piece<std::byte> here = plan_.incoming(ctx(), share.peer);
      if (share.first < told_words) {
        if (has_worked) machine::fence_acquire_release();
        const std::uint64_t word = share.first == told_needs   ? needs
                                   : share.first == told_place ? place_for_peer(ctx(), plan_, here.at, share.peer)
                                   : share.first == told_sent  ? plan_.sent_bytes(share.peer)
                                                               : plan_.expected_bytes(share.peer);
        session_.send_word(share.peer, share.first, word);
      }
      const Piece<const std::byte> piece = plan_.outgoing(ctx(), share.peer);
      if (piece.bytes > most_) return;
      for (std::uint32_t i = share.first; std::size_t{8} * i < piece.bytes; i += share.width) {
        const std::uint64_t word = load_word(piece.at, i, piece.bytes);
        if (share.peer == ctx().rank)
          store_word(here.at, i, piece.bytes, word);
        else
          session_.send_word(share.peer, told_words + i, word);
      }
    });
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Status hear(const Share& share, Timeout timeout) {
    std::uint64_t word[1] = {};
    if (const Status status = session_.receive_words(share.peer, share.first, word, timeout); status != Status::ok)
      return status;
    if (share.first == told_needs) heard_ |= word[0];
    if (share.first < told_sent) return Status::ok;
    const bool sent = share.first == told_sent;
    return compare_lengths(ctx(), share.peer, share.first,
                           sent ? plan_.expected_bytes(share.peer) : plan_.sent_bytes(share.peer), word[0]);
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Status receive(const Share& share, Timeout timeout) const {
    const Piece<std::byte> piece = plan_.incoming(ctx(), share.peer);
    if (piece.bytes > most_) return Status::ok;
    for (std::uint32_t i = share.first; std::size_t{8} * i < piece.bytes; i += share.width) {
      std::uint64_t word[1] = {};
      if (const Status status = session_.receive_words(share.peer, told_words + i, word, timeout); status != Status::ok)
        return status;
      store_word(piece.at, i, piece.bytes, word[0]);
    }
    return Status::ok;
  }

  Session<Group>& session_;
  const MovementPlan& plan_;
  std::size_t most_;
  std::uint64_t heard_ = 0;  ///< bits of all needs that this thread has received
  bool keeps_long_ = true;   ///< true if an earlier, interrupted call has sent: then it is not known
};

/// Movement of any sizes.
template <class Group, class Stores>
[[nodiscard]] BEELINE_HOST_DEVICE Status move_varied(Session<Group>& session, const MovementPlan& plan, Stores& stores,
                                                     Timeout timeout) {
  VariedRound<Group> round(session, plan);
  const MovementPlan long_plan = plan.without_short(round.most());
  if (session.stage() == 0) {
    if (const Status status = round.run(timeout); status != Status::ok) return status;
    if (!round.leaves_any()) {
      if (round.keeps_long()) copy_own_piece(session.group(), OwnPiece(session.context(), long_plan));
      session.note(Transfer::packets);
      session.group().sync();  // the whole result has arrived
      return Status::ok;
    }
    acquire_words(session, told_words);  // from here on other members' memory is written, too
    begin_direct(session, long_plan, stores, round.leaves_outside());
  }
  return end_direct(session, long_plan, stores, timeout);
}

}  // namespace beeline::detail
