// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The round with which members begin to store into each other's memory.

#include "beeline/collectives/call_check.hpp"
#include "beeline/collectives/exchange_plan.hpp"
#include "beeline/collectives/meeting.hpp"

namespace beeline::detail {

/// What a member tells another: where that one's piece is to lie in its slot.
inline constexpr std::uint32_t told_place = 0;
/// Twice the bytes of its longest piece, and one more if a piece is to lie outside its slot. To all alike.
inline constexpr std::uint32_t told_needs = 1;
/// Where lengths differ from peer to peer: the bytes that it sends to that one, and expects from it.
inline constexpr std::uint32_t told_sent = 2;
inline constexpr std::uint32_t told_expected = 3;

/// Compares a length that `peer` has told with what this member expects from it or sends to it. Where they differ,
/// both members record both, and abort the team: nothing has been moved.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status compare_lengths(const Context& ctx, std::uint32_t peer,
                                                                std::uint32_t what, std::uint64_t mine,
                                                                std::uint64_t theirs) {
  if (mine == theirs) return Status::ok;
  refuse_call(ctx, peer, what == told_sent ? CallDifference::expected_length : CallDifference::sent_length, mine,
              theirs);
  return Status::invalid_argument;
}

/// Every member tells all; see above. Also a barrier that orders memory: who has been told a place may write there.
/// Returns invalid_argument where lengths do not fit together.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status tell_places(Lane<Group>& lane, const ExchangePlan& plan, Timeout timeout) {
  const Context& ctx = lane.context();
  std::uint64_t outside = 0;
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
    if (const auto piece = plan.incoming(ctx, peer); peer != ctx.rank && piece.bytes != 0)
      if (place_in_slot(ctx, piece.at) == no_place) outside = 1;
  const std::uint64_t needs = 2 * static_cast<std::uint64_t>(plan.longest_incoming(ctx)) + outside;
  const auto tell = [&](std::uint32_t peer, std::uint32_t what) {
    return what == told_place   ? place_in_slot(ctx, plan.incoming(ctx, peer).at)
           : what == told_needs ? needs
           : what == told_sent  ? plan.sent_bytes(peer)
                                : plan.expected_bytes(peer);
  };
  const auto hear = [&](std::uint32_t peer, std::uint32_t what, std::uint64_t theirs) {
    if (what < told_sent) return Status::ok;
    return compare_lengths(ctx, peer, what, what == told_sent ? plan.expected_bytes(peer) : plan.sent_bytes(peer),
                           theirs);
  };
  return meet(lane, plan.varies() ? 4 : 2, timeout, tell, hear);
}

/// What `peer` has told, to every thread, until the lane's next round: nobody writes there before.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t told(const Lane<Group>& lane, std::uint32_t peer, std::uint32_t what) {
  std::uint64_t word[1] = {};
  static_cast<void>(lane.receive_words(peer, what, word, Timeout::none()));
  return word[0];
}

/// What all need together: the longest piece of all, and whether one lies outside.
struct Needs {
  std::size_t longest;
  bool outside;
};
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Needs needs_of_all(const Lane<Group>& lane) {
  Needs all{0, false};
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < lane.context().size; ++peer) {
    const std::uint64_t theirs = told(lane, peer, told_needs);
    all.longest = theirs / 2 > all.longest ? theirs / 2 : all.longest;
    all.outside = all.outside || (theirs & 1u) != 0;
  }
  return all;
}

}  // namespace beeline::detail
