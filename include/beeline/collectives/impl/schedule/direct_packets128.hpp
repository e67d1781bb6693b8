// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-gather and all-to-all in packets of 128 bytes: rounds of as much of every piece as an area holds.

#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/collectives/impl/protocol/ll128.hpp"

namespace beeline::detail {

/// Some bytes of all pieces: those of a round.
struct LinedPieces {
  LinedVector<const std::byte> sent;
  LinedVector<std::byte> received;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t whole_lines() const {
    const std::uint32_t sent_words = sent.whole_words(), received_words = received.whole_words();
    return (sent_words < received_words ? sent_words : received_words) / line_words;
  }
};

/// Sends a line to each of the others, and stores this member's own.
template <bool whole, std::uint32_t members>
BEELINE_INLINE BEELINE_HOST_DEVICE void send_line_of_pieces(const LineRound<members>& round, const LinedPieces& pieces,
                                                            const LinePlace& place) {
  const Context& ctx = round.context();
  constexpr std::uint32_t batch = LineRound<members>::batch;
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 1; round.reaches(step); step += batch) {  // everyone begins with another peer
    machine::PacketPair words[batch];
    bool exists[batch];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k) {
      exists[k] = place.exists && round.reaches(step + k);
      if (exists[k]) words[k] = pieces.sent.at(peer_ahead(ctx, step + k)).template load<whole>(0, place);
    }
    round.template send<whole>(step, place.line, exists, words);
  }
  if (place.exists)
    pieces.received.at(ctx.rank).template store<whole>(0, place,
                                                       pieces.sent.at(ctx.rank).template load<whole>(0, place));
}

/// Receives a line from each of the others.
template <bool whole, std::uint32_t members>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive_line_of_pieces(const LineRound<members>& round,
                                                                               const LinedPieces& pieces,
                                                                               const LinePlace& place) {
  constexpr std::uint32_t batch = LineRound<members>::batch;
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < round.size(); first += batch) {
    machine::PacketPair words[batch];
    bool exists[batch];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k) exists[k] = place.exists && round.hears(first + k);
    const Status status = round.receive(first, place.line, exists, words);
    if (status != Status::ok) return status;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k)
      if (exists[k]) pieces.received.at(first + k).template store<whole>(0, place, words[k]);
  }
  return Status::ok;
}

/// One round: as many lines of every piece.
template <std::uint32_t members, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status move_lines(const Session<Group>& session,
                                                                   const LinedPieces& pieces, std::uint32_t lines,
                                                                   bool is_new, Timeout timeout) {
  const LineRound<members> round(session, timeout, false);
  const std::uint32_t whole_lines = pieces.whole_lines();
  if (is_new)
    for_each_place(session.group(), lines, whole_lines,
                   [&](const LinePlace& place, auto whole) { send_line_of_pieces<whole()>(round, pieces, place); });
  Status status = Status::ok;
  for_each_place(session.group(), lines, whole_lines, [&](const LinePlace& place, auto whole) {
    if (status == Status::ok) status = receive_line_of_pieces<whole()>(round, pieces, place);
  });
  return status;
}

/// Exchange of pieces of one length, by a group of whole warps. invalid_argument where pieces differ, or the members
/// send no lines.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status move_packets128(Session<Group>& session,
                                                                        const MovementPlan& plan, Timeout timeout) {
  if (!has_lines(session) || !plan.is_full() || plan.varies()) return Status::invalid_argument;
  const std::size_t most = std::size_t{line_payload_bytes} * session.area_lines();
  const Status result = in_rounds(session, plan.bytes, most, [&](std::size_t done, std::size_t some) {
    const auto lines = static_cast<std::uint32_t>((some + line_payload_bytes - 1) / line_payload_bytes);
    bool is_new = false;
    if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
    const auto bytes = static_cast<std::uint32_t>(some);
    const LinedPieces pieces{{plan.source + done, bytes, plan.send_step},
                             {plan.destination + done, bytes, plan.receive_step}};
    return session.finish(session.context().size == 2 ? move_lines<2>(session, pieces, lines, is_new, timeout)
                                                      : move_lines<0>(session, pieces, lines, is_new, timeout));
  });
  if (result == Status::ok) session.group().sync();  // all of it is there
  return result;
}

}  // namespace beeline::detail
