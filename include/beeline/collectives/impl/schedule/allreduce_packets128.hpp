// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce in packets of 128 bytes: as in packets (allreduce_packets.hpp), with a sixteenth of every store for the
/// flag in place of half of it. Source: seed 000, 6.8 (all-gather; all-to-all + all-gather), in the protocol LL128.

#include "beeline/collectives/impl/protocol/ll128.hpp"

namespace beeline::detail {

/// Sends a line of each member's part to it.
template <bool whole, std::uint32_t members, class T>
BEELINE_INLINE BEELINE_HOST_DEVICE void send_line_of_parts(const LineRound<members>& round,
                                                           const LinedVector<const T>& source, const LinedParts& parts,
                                                           const LinePlace& place) {
  constexpr std::uint32_t batch = LineRound<members>::batch;
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 1; round.reaches(step); step += batch) {  // everyone begins with another peer
    machine::PacketPair words[batch];
    bool exists[batch];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k) {
      const std::uint32_t peer = peer_ahead(round.context(), step + k);
      exists[k] = round.reaches(step + k) && (whole || place.line < parts.lines(peer));
      if (exists[k]) words[k] = source.template load<whole>(parts.first(peer), place);
    }
    round.template send<whole>(step, place.line, exists, words);
  }
}

/// A line of all members, combined in the order of ranks; `own` is this one's, where it sends itself none. Threads
/// whose line does not exist combine whatever they have, and nobody takes it.
template <class T, std::uint32_t members>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_line(const LineRound<members>& round,
                                                                    const LinePlace& place, Reduction reduction,
                                                                    machine::PacketPair own,
                                                                    machine::PacketPair& result) {
  Partial<T, machine::PacketPair> partial;
  constexpr std::uint32_t batch = LineRound<members>::batch;
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < round.size(); first += batch) {
    machine::PacketPair words[batch];
    bool exists[batch];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k) exists[k] = place.exists && round.hears(first + k);
    if (const Status status = round.receive(first, place.line, exists, words); status != Status::ok) return status;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k) {
      if (first + k >= round.size()) continue;
      const machine::PacketPair word = round.hears(first + k) ? words[k] : own;
      first + k == 0 ? partial.start(word) : partial.combine(reduction, word);
    }
  }
  result = partial.finish(reduction, round.size());
  return Status::ok;
}

/// A reduced line of each part, which lies at line `from`, from its owner into the destination.
template <bool whole, std::uint32_t members, class T>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status collect_line(const LineRound<members>& round,
                                                                     const LinedVector<T>& destination,
                                                                     const LinedParts& parts, const LinePlace& place,
                                                                     std::uint32_t from) {
  constexpr std::uint32_t batch = LineRound<members>::batch;
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < round.size(); first += batch) {
    machine::PacketPair words[batch];
    bool exists[batch];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k)
      exists[k] = round.hears(first + k) && (whole || place.line < parts.lines(first + k));
    if (const Status status = round.receive(first, from, exists, words); status != Status::ok) return status;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k)
      if (exists[k]) destination.template store<whole>(parts.first(first + k), place, words[k]);
  }
  return Status::ok;
}

/// One round: everyone sends everything to all, and reduces. The vector fits an area.
template <std::uint32_t members, class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status one_shot_lines(const Session<Group>& session,
                                                                       const LinedVector<T>& destination,
                                                                       const LinedVector<const T>& source, bool is_new,
                                                                       Reduction reduction, Timeout timeout) {
  const LineRound<members> round(session, timeout, session.sends_to_itself(timeout, is_new));
  const LinedParts one(source.words(), 1);
  const std::uint32_t sent = one.whole_lines(source.whole_words()),
                      received = one.whole_lines(destination.whole_words());
  Status status = Status::ok;
  if (is_new)
    for_each_place(session.group(), one.lines(0), sent, [&](const LinePlace& place, auto whole) {
      machine::PacketPair words{};
      if (place.exists) words = source.template load<whole()>(0, place);
      round.template send_to_all<whole()>(place.line, place.exists, words);
    });
  for_each_place(session.group(), one.lines(0), sent < received ? sent : received,
                 [&](const LinePlace& place, auto whole) {
                   if (status != Status::ok) return;  // the same on the whole warp
                   machine::PacketPair own{}, result;
                   if (place.exists && !round.sends_to_itself()) own = source.template load<whole()>(0, place);
                   status = reduce_line<T>(round, place, reduction, own, result);
                   if (status == Status::ok && place.exists) destination.template store<whole()>(0, place, result);
                 });
  return status;
}

/// One round: a part of the vector to each, who reduces it, and sends it to all, behind what they got: no barrier lies
/// between the two steps. What was received before a time-out is still there, so all of it is done again.
template <std::uint32_t members, class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status two_shot_lines(const Session<Group>& session,
                                                                       const LinedVector<T>& destination,
                                                                       const LinedVector<const T>& source, bool is_new,
                                                                       Reduction reduction, Timeout timeout) {
  const LineRound<members> round(session, timeout, session.sends_to_itself(timeout, is_new));
  const LinedParts parts(source.words(), round.size());
  const std::uint32_t rank = session.context().rank, own_first = parts.first(rank), half = session.area_lines() / 2,
                      sent = parts.whole_lines(source.whole_words()),
                      received = parts.whole_lines(destination.whole_words());
  Status status = Status::ok;
  if (is_new)
    for_each_place(session.group(), parts.lines(0), sent, [&](const LinePlace& place, auto whole) {
      send_line_of_parts<whole()>(round, source, parts, place);
    });
  for_each_place(session.group(), parts.lines(rank), sent < received ? sent : received,
                 [&](const LinePlace& place, auto whole) {
                   if (status != Status::ok) return;
                   machine::PacketPair own{}, result;
                   const bool is_own = place.exists && !round.sends_to_itself();
                   if (is_own) own = source.template load<whole()>(own_first, place);
                   status = reduce_line<T>(round, place, reduction, own, result);
                   if (status != Status::ok) return;
                   if (is_own) destination.template store<whole()>(own_first, place, result);
                   round.template send_to_all<whole()>(half + place.line, place.exists, result);
                 });
  for_each_place(session.group(), parts.lines(0), received, [&](const LinePlace& place, auto whole) {
    if (status == Status::ok) status = collect_line<whole()>(round, destination, parts, place, half + place.line);
  });
  return status;
}

/// All-reduce of any count, in as many rounds as it needs, by a group of whole warps, among `members`, or (0) among any
/// number. invalid_argument where the members send no lines.
template <bool one_shot, std::uint32_t members = 0, class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce_packets128(Session<Group>& session, T* destination,
                                                                             const T* source, std::size_t count,
                                                                             Reduction reduction, Timeout timeout) {
  if (!has_lines(session)) return Status::invalid_argument;
  const std::size_t lines =
      one_shot ? session.area_lines() : std::size_t{session.area_lines()} / 2 * session.context().size;
  const std::size_t most = lines * line_words * (8 / sizeof(T));
  return in_rounds(session, count, most, [&](std::size_t done, std::size_t all) {
    const auto some = static_cast<std::uint32_t>(all);
    bool is_new = false;
    if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
    const LinedVector<T> to(destination + done, some);
    const LinedVector<const T> from(source + done, some);
    return session.finish(one_shot ? one_shot_lines<members>(session, to, from, is_new, reduction, timeout)
                                   : two_shot_lines<members>(session, to, from, is_new, reduction, timeout));
  });
}

}  // namespace beeline::detail
