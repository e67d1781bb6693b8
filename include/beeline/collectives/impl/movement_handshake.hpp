// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The round with which members begin to store into each other's memory.

#include "beeline/collectives/impl/call_check.hpp"
#include "beeline/collectives/impl/handshake.hpp"
#include "beeline/collectives/impl/movement_plan.hpp"

namespace beeline::detail {

/// Word that a member sends to a peer: the offset of the destination of the peer's piece, from the start of the
/// member's slot. In movements with one sender, the sender sends the offset of the peer's piece in its source, and the
/// receivers send the offset of their destination to all.
inline constexpr std::uint32_t told_place = 0;
/// Word that is the same for all peers: twice the bytes of the member's longest piece, plus one if the destination of a
/// piece is outside its slot.
inline constexpr std::uint32_t told_needs = 1;
/// Words used if lengths differ from peer to peer: the bytes that the member sends to the peer, and expects from the
/// peer.
inline constexpr std::uint32_t told_sent = 2;
inline constexpr std::uint32_t told_expected = 3;
inline constexpr std::uint32_t told_words = 4;

/// Compares a length from `peer` with the length that this member expects from it or sends to it. If they differ, both
/// members record both lengths and abort the team; the piece is not moved.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status compare_lengths(const Context& ctx, std::uint32_t peer,
                                                                std::uint32_t what, std::uint64_t mine,
                                                                std::uint64_t theirs) {
  if (mine == theirs) return Status::ok;
  refuse_call(ctx, {what == told_sent ? CallDifference::expected_length : CallDifference::sent_length,
                    peer,
                    {.packed = mine, .count = 0},
                    {.packed = theirs, .count = 0}});
  return Status::invalid_argument;
}

/// The position at which `peer` reaches a vector of this member, in bytes from the start of this member's slot;
/// no_place if `peer` does not reach it.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t place_for_peer(const Context& ctx, const MovementPlan& plan,
                                                                      const std::byte* vector, std::uint32_t peer,
                                                                      bool is_source = false) {
  if (plan.mappings == nullptr) return place_in_slot(ctx, vector);
  if (!plan.mappings->complete) return no_place;
  const auto& distances = is_source ? plan.mappings->source : plan.mappings->destination;
  return reinterpret_cast<std::uintptr_t>(vector) + distances[peer] - reinterpret_cast<std::uintptr_t>(own_slot(ctx));
}

/// How a vector is accessed at the offset that its member has sent.
[[nodiscard]] BEELINE_HOST_DEVICE inline Transfer transfer_at(const Context& ctx, const MovementPlan& plan,
                                                              std::uint64_t place) {
  return plan.mappings == nullptr || place >> ctx.slot_shift == 0 ? Transfer::in_place : Transfer::registered;
}

/// The words that this member sends to its peers: see `told_place` and the following.
class ToldPlaces {
 public:
  BEELINE_HOST_DEVICE ToldPlaces(const Context& ctx, const MovementPlan& plan) : ctx_(ctx), plan_(plan) {
    BEELINE_NO_UNROLL
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      const Piece<std::byte> piece = plan.incoming(ctx, peer);
      if (peer == ctx.rank || piece.bytes == 0) continue;
      if (plan.mappings != nullptr ? !plan.mappings->complete : place_in_slot(ctx, piece.at) == no_place) outside_ = 1;
      longest_ = piece.bytes > longest_ ? piece.bytes : longest_;
    }
  }

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t words() const { return plan_.varies() ? told_words : 2; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t operator()(std::uint32_t peer, std::uint32_t what) const {
    return what == told_place   ? place_for(peer)
           : what == told_needs ? 2 * longest_ + outside_
           : what == told_sent  ? plan_.sent_bytes(peer)
                                : plan_.expected_bytes(peer);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t place_for(std::uint32_t peer) const {
    if (plan_.sender == ctx_.rank) return place_for_peer(ctx_, plan_, plan_.outgoing(ctx_, peer).at, peer, true);
    return place_for_peer(ctx_, plan_, plan_.incoming(ctx_, plan_.sender == no_peer ? peer : plan_.sender).at, peer);
  }

  const Context& ctx_;
  const MovementPlan& plan_;
  std::uint64_t longest_ = 0, outside_ = 0;
};

/// The members' needs, as received by this thread.
class HeardNeeds {
 public:
  BEELINE_HOST_DEVICE HeardNeeds(const Context& ctx, const MovementPlan& plan) : ctx_(ctx), plan_(plan) {}

  /// Returns invalid_argument if a sent and an expected length differ.
  [[nodiscard]] BEELINE_HOST_DEVICE Status operator()(std::uint32_t peer, std::uint32_t what, std::uint64_t theirs) {
    if (what == told_needs) {
      outside = outside || (theirs & 1u) != 0;
      longest = theirs / 2 > longest ? theirs / 2 : longest;
    }
    if (what < told_sent) return Status::ok;
    return compare_lengths(ctx_, peer, what, what == told_sent ? plan_.expected_bytes(peer) : plan_.sent_bytes(peer),
                           theirs);
  }

  bool outside = false;
  std::uint64_t longest = 0;

 private:
  const Context& ctx_;
  const MovementPlan& plan_;
};

/// Every member publishes its offset to all. Also a barrier that orders memory: a peer may then write to the offset.
/// Returns invalid_argument if a sent and an expected length differ.
///   outside  set to whether the destination of any member's piece is outside its slot
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status tell_places(Session<Group>& session, const MovementPlan& plan, Timeout timeout,
                                                     bool& outside) {
  const ToldPlaces tell(session.context(), plan);
  HeardNeeds heard(session.context(), plan);
  const Status status = handshake(
      session, tell.words(), timeout, tell,
      [&heard](std::uint32_t peer, std::uint32_t what, std::uint64_t theirs) { return heard(peer, what, theirs); });
  if (status == Status::ok) outside = session.group().any(heard.outside);
  return status;
}

/// Size in bytes of the longest piece that any member gets.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE std::size_t longest_of_all(const Session<Group>& session) {
  constexpr std::uint32_t batch = 4;  // loads that overlap
  std::size_t longest = 0;
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < session.context().size; first += batch) {
    std::size_t theirs[batch] = {};
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k)
      if (first + k < session.context().size) theirs[k] = session.heard_word(first + k, told_needs, 0) / 2;
    BEELINE_UNROLL
    for (const std::size_t bytes : theirs) longest = bytes > longest ? bytes : longest;
  }
  return longest;
}

}  // namespace beeline::detail
