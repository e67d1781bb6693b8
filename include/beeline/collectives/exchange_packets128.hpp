// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-gather and all-to-all in packets of 128 bytes: rounds of as much of every piece as an area holds.

#include "beeline/collectives/exchange_plan.hpp"
#include "beeline/collectives/lines.hpp"

namespace beeline::detail {

/// Some bytes of all pieces: those of a round.
struct LinedPieces {
  LinedVector<const std::byte> sent;
  LinedVector<std::byte> received;
};

/// Sends a line to each of the others, and stores this member's own.
template <class Group>
BEELINE_INLINE BEELINE_HOST_DEVICE void send_line_of_pieces(const Lane<Group>& lane, const LinedPieces& pieces,
                                                            const LinePlace& place) {
  const Context& ctx = lane.context();
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 0; step < ctx.size; step += line_peers) {  // everyone begins with another peer
    LinePlace places[line_peers] = {place, place, place, place};
    machine::PacketPair words[line_peers];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k) {
      const std::uint32_t peer = peer_ahead(ctx, step + k);
      places[k].exists = place.exists && step + k < ctx.size;
      if (places[k].exists) words[k] = pieces.sent.at(peer).load(0, place);
    }
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k) {
      if (step + k != 0)
        send_line(lane, peer_ahead(ctx, step + k), place.line, places[k], words[k]);
      else if (places[0].exists)
        pieces.received.at(ctx.rank).store(0, place, words[0]);
    }
  }
}

/// Receives a line from each of the others.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status
receive_line_of_pieces(const Lane<Group>& lane, const LinedPieces& pieces, const LinePlace& place, Timeout timeout) {
  const Context& ctx = lane.context();
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < ctx.size; first += line_peers) {
    machine::PacketPair words[line_peers];
    bool exists[line_peers];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      exists[k] = place.exists && first + k < ctx.size && first + k != ctx.rank;
    const Status status = receive_lines(lane, first, place.line, place.thread, exists, words, timeout);
    if (status != Status::ok) return status;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      if (exists[k]) pieces.received.at(first + k).store(0, place, words[k]);
  }
  return Status::ok;
}

/// Exchange of pieces of one length, by a group of whole warps. invalid_argument where pieces differ, or the members
/// send no lines.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status exchange_packets128(Lane<Group>& lane, const ExchangePlan& plan,
                                                                            Timeout timeout) {
  if (!has_lines(lane) || !plan.is_full() || plan.varies()) return Status::invalid_argument;
  const std::size_t most = std::size_t{line_payload_bytes} * lane.area_lines();
  const Status result = in_rounds(lane, plan.bytes, most, [&](std::size_t done, std::size_t some) {
    const auto lines = static_cast<std::uint32_t>((some + line_payload_bytes - 1) / line_payload_bytes);
    bool is_new = false;
    if (const Status status = lane.enter(timeout, is_new); status != Status::ok) return status;
    const auto bytes = static_cast<std::uint32_t>(some);
    const LinedPieces pieces{{plan.source + done, bytes, plan.send_step},
                             {plan.destination + done, bytes, plan.receive_step}};
    if (is_new)
      for_each_line(lane.group(), lines, [&](std::uint32_t line, std::uint32_t thread, bool exists) {
        send_line_of_pieces(lane, pieces, {line, thread, exists});
      });
    Status status = Status::ok;
    for_each_line(lane.group(), lines, [&](std::uint32_t line, std::uint32_t thread, bool exists) {
      if (status == Status::ok) status = receive_line_of_pieces(lane, pieces, {line, thread, exists}, timeout);
    });
    return lane.finish(status);
  });
  if (result == Status::ok) lane.group().sync();  // all of it is there
  return result;
}

}  // namespace beeline::detail
