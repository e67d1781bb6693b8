// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Exchanges in packets of 128 bytes, of pieces that are alike: rounds of as much of every piece as an area holds.

#include "beeline/collectives/exchange_plan.hpp"
#include "beeline/collectives/lines.hpp"

namespace beeline::detail {

/// Sends a line of the bytes from `done` on to each of the others, and stores this member's own.
template <class Group>
BEELINE_INLINE BEELINE_HOST_DEVICE void send_line_of_pieces(const Lane<Group>& lane, const ExchangePlan& plan,
                                                            std::size_t done, std::size_t most, LinePlace place) {
  const Context& ctx = lane.context();
  const std::uint32_t line = place.line;
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 0; step < ctx.size; step += line_peers) {  // everyone begins with another peer
    LinePlace places[line_peers] = {place, place, place, place};
    machine::PacketPair words[line_peers];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k) {
      if (step + k >= ctx.size) continue;
      const auto piece = plan.outgoing(ctx, peer_ahead(ctx, step + k)).part(done, most);
      places[k].exists = std::size_t{line} * line_payload_bytes < piece.bytes;
      const LinedVector<const std::byte> source(piece.at, static_cast<std::uint32_t>(piece.bytes));
      if (places[k].exists) words[k] = source.load(0, place);
    }
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      if (step + k != 0 && step + k < ctx.size) send_line(lane, peer_ahead(ctx, step + k), line, places[k], words[k]);
    const auto own = plan.incoming(ctx, ctx.rank).part(done, most);
    if (step == 0 && places[0].exists && own.bytes != 0)
      LinedVector<std::byte>(own.at, static_cast<std::uint32_t>(own.bytes)).store(0, place, words[0]);
  }
}

/// Receives a line of the bytes from `done` on from each of the others.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive_line_of_pieces(const Lane<Group>& lane,
                                                                               const ExchangePlan& plan,
                                                                               std::size_t done, std::size_t most,
                                                                               const LinePlace& place,
                                                                               Timeout timeout) {
  const Context& ctx = lane.context();
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < ctx.size; first += line_peers) {
    machine::PacketPair words[line_peers];
    bool exists[line_peers];
    const auto piece = [&](std::uint32_t k) { return plan.incoming(ctx, first + k).part(done, most); };
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      exists[k] = first + k < ctx.size && first + k != ctx.rank &&
                  std::size_t{place.line} * line_payload_bytes < piece(k).bytes;
    const Status status = receive_lines(lane, first, place.line, place.thread, exists, words, timeout);
    if (status != Status::ok) return status;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      if (exists[k])
        LinedVector<std::byte>(piece(k).at, static_cast<std::uint32_t>(piece(k).bytes)).store(0, place, words[k]);
  }
  return Status::ok;
}

/// Exchange of pieces of one length, by a group of whole warps. invalid_argument where pieces differ, or the members
/// send no lines.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status exchange_packets128(Lane<Group>& lane, const ExchangePlan& plan,
                                                                            Timeout timeout) {
  if (!has_lines(lane) || plan.varies()) return Status::invalid_argument;
  const std::size_t most = std::size_t{line_payload_bytes} * lane.area_lines();
  for (std::size_t done = lane.offset(); done < plan.bytes;) {
    const std::size_t some = plan.bytes - done < most ? plan.bytes - done : most;
    const auto lines = static_cast<std::uint32_t>((some + line_payload_bytes - 1) / line_payload_bytes);
    bool is_new = false;
    if (const Status status = lane.enter(timeout, is_new); status != Status::ok) return status;
    if (is_new)
      for_each_line(lane.group(), lines, [&](std::uint32_t line, std::uint32_t thread, bool exists) {
        send_line_of_pieces(lane, plan, done, most, {line, thread, exists});
      });
    Status status = Status::ok;
    for_each_line(lane.group(), lines, [&](std::uint32_t line, std::uint32_t thread, bool exists) {
      if (status == Status::ok)
        status = receive_line_of_pieces(lane, plan, done, most, {line, thread, exists}, timeout);
    });
    // Where some send nothing to some, who has received all does not know that all have come.
    status = plan.is_full() ? lane.finish(status) : lane.finish_one_way(status);
    if (status != Status::ok) return status;
    done += some;
    lane.set_offset(done);
  }
  lane.group().sync();  // the whole result is there
  lane.set_offset(0);
  return Status::ok;
}

}  // namespace beeline::detail
