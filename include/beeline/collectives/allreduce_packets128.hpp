// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce in packets of 128 bytes: as in packets (allreduce_packets.hpp), with a sixteenth of every store for the
/// flag in place of half of it. Source: seed 000, 6.8 (all-gather; all-to-all + all-gather), in the protocol LL128.

#include "beeline/collectives/lines.hpp"

namespace beeline::detail {

/// Sends a line of each member's part to it.
template <bool whole, class T>
BEELINE_INLINE BEELINE_HOST_DEVICE void send_line_of_parts(const LineRound& round, const LinedVector<const T>& source,
                                                           const LinedParts& parts, const LinePlace& place) {
  const Context& ctx = round.context();
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 1; step <= ctx.size; step += line_peers) {  // everyone begins with another peer
    machine::PacketPair words[line_peers];
    bool exists[line_peers];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k) {
      const std::uint32_t peer = peer_ahead(ctx, step + k);
      exists[k] = step + k <= ctx.size && (whole || place.line < parts.lines(peer));
      if (exists[k]) words[k] = source.template load<whole>(parts.first(peer), place);
    }
    round.template send<whole>(step, place.line, exists, words);
  }
}

/// A line of all members, combined in the order of ranks.
template <bool whole, class T>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_line(const LineRound& round, const LinePlace& place,
                                                                    Reduction reduction, Timeout timeout,
                                                                    machine::PacketPair& result) {
  const std::uint32_t members = round.context().size;
  Partial<T, machine::PacketPair> partial;
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < members; first += line_peers) {
    machine::PacketPair words[line_peers];
    std::uint32_t peers[line_peers];
    bool exists[line_peers];
    members_from(first, members, peers);
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k) exists[k] = place.exists && first + k < members;
    const Status status = round.template receive<whole>(peers, place.line, exists, words, timeout);
    if (status != Status::ok) return status;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k) {
      if (!exists[k]) continue;
      first + k == 0 ? partial.start(words[k]) : partial.combine(reduction, words[k]);
    }
  }
  result = partial.finish(reduction, members);
  return Status::ok;
}

/// A reduced line of each part, which lies at line `from`, from its owner into the destination.
template <bool whole, class T>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status collect_line(const LineRound& round,
                                                                     const LinedVector<T>& destination,
                                                                     const LinedParts& parts, const LinePlace& place,
                                                                     std::uint32_t from, Timeout timeout) {
  const std::uint32_t members = round.context().size;
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < members; first += line_peers) {
    machine::PacketPair words[line_peers];
    std::uint32_t peers[line_peers];
    bool exists[line_peers];
    members_from(first, members, peers);
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      exists[k] = first + k < members && (whole || place.line < parts.lines(first + k));
    const Status status = round.template receive<whole>(peers, from, exists, words, timeout);
    if (status != Status::ok) return status;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      if (exists[k]) destination.template store<whole>(parts.first(first + k), place, words[k]);
  }
  return Status::ok;
}

/// One round: everyone sends everything to all, and reduces. The vector fits an area.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status one_shot_lines(const Lane<Group>& lane,
                                                                       const LinedVector<T>& destination,
                                                                       const LinedVector<const T>& source, bool is_new,
                                                                       Reduction reduction, Timeout timeout) {
  const LineRound round(lane);
  const LinedParts one(source.words(), 1);
  Status status = Status::ok;
  if (is_new)
    for_each_place(lane.group(), one.lines(0), one.whole_lines(source.whole_words()),
                   [&](const LinePlace& place, auto whole) {
                     machine::PacketPair words{};
                     if (place.exists) words = source.template load<whole()>(0, place);
                     round.template send_to_all<whole()>(place.line, place.exists, words);
                   });
  for_each_place(lane.group(), one.lines(0), one.whole_lines(destination.whole_words()),
                 [&](const LinePlace& place, auto whole) {
                   if (status != Status::ok) return;  // the same on the whole warp
                   machine::PacketPair result;
                   status = reduce_line<whole(), T>(round, place, reduction, timeout, result);
                   if (status == Status::ok && place.exists) destination.template store<whole()>(0, place, result);
                 });
  return status;
}

/// One round: a part of the vector to each, who reduces it, and sends it to all, behind what they got: no barrier lies
/// between the two steps. What was received before a time-out is still there, so all of it is done again.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status two_shot_lines(const Lane<Group>& lane,
                                                                       const LinedVector<T>& destination,
                                                                       const LinedVector<const T>& source, bool is_new,
                                                                       Reduction reduction, Timeout timeout) {
  const LineRound round(lane);
  const LinedParts parts(source.words(), lane.context().size);
  const std::uint32_t own_lines = parts.lines(lane.context().rank), half = lane.area_lines() / 2;
  Status status = Status::ok;
  if (is_new)
    for_each_place(
        lane.group(), parts.lines(0), parts.whole_lines(source.whole_words()),
        [&](const LinePlace& place, auto whole) { send_line_of_parts<whole()>(round, source, parts, place); });
  for_each_place(lane.group(), own_lines, own_lines, [&](const LinePlace& place, auto whole) {
    if (status != Status::ok) return;
    machine::PacketPair result;
    status = reduce_line<whole(), T>(round, place, reduction, timeout, result);
    if (status == Status::ok) round.template send_to_all<whole()>(half + place.line, place.exists, result);
  });
  for_each_place(lane.group(), parts.lines(0), parts.whole_lines(destination.whole_words()),
                 [&](const LinePlace& place, auto whole) {
                   if (status == Status::ok)
                     status = collect_line<whole()>(round, destination, parts, place, half + place.line, timeout);
                 });
  return status;
}

/// All-reduce of any count, in as many rounds as it needs, by a group of whole warps. invalid_argument where the
/// members send no lines.
template <bool one_shot, class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce_packets128(Lane<Group>& lane, T* destination,
                                                                             const T* source, std::size_t count,
                                                                             Reduction reduction, Timeout timeout) {
  if (!has_lines(lane)) return Status::invalid_argument;
  const std::size_t lines = one_shot ? lane.area_lines() : std::size_t{lane.area_lines()} / 2 * lane.context().size;
  const std::size_t most = lines * line_words * (8 / sizeof(T));
  return in_rounds(lane, count, most, [&](std::size_t done, std::size_t all) {
    const auto some = static_cast<std::uint32_t>(all);
    bool is_new = false;
    if (const Status status = lane.enter(timeout, is_new); status != Status::ok) return status;
    const LinedVector<T> to(destination + done, some);
    const LinedVector<const T> from(source + done, some);
    return lane.finish(one_shot ? one_shot_lines<T>(lane, to, from, is_new, reduction, timeout)
                                : two_shot_lines<T>(lane, to, from, is_new, reduction, timeout));
  });
}

}  // namespace beeline::detail
