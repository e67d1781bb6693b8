// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce in packets of 128 bytes: as in packets (allreduce_packets.hpp), with a sixteenth of every store for the
/// flag in place of half of it. Source: seed 000, 6.8 (all-gather; all-to-all + all-gather), in the protocol LL128.

#include "beeline/collectives/lines.hpp"

namespace beeline::detail {

/// Sends a line of each member's part to it, or, in one shot, a line of the one part there is to all.
template <bool one_shot, class T, class Group>
BEELINE_INLINE BEELINE_HOST_DEVICE void send_parts(const Lane<Group>& lane, const LinedVector<const T>& source,
                                                   const LinedParts& parts, const LinePlace& place) {
  const Context& ctx = lane.context();
  machine::PacketPair words[line_peers];
  if (one_shot && place.exists) words[0] = source.load(0, place);
  BEELINE_NO_UNROLL
  for (std::uint32_t step = 1; step <= ctx.size; step += line_peers) {  // everyone begins with another peer
    LinePlace places[line_peers] = {place, place, place, place};
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k) {
      if (one_shot || step + k > ctx.size) continue;
      const std::uint32_t peer = peer_ahead(ctx, step + k);
      places[k].exists = place.line < parts.lines(peer);
      if (places[k].exists) words[k] = source.load(parts.first(peer), place);
    }
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      if (step + k <= ctx.size)
        send_line(lane, peer_ahead(ctx, step + k), place.line, places[k], words[one_shot ? 0 : k]);
  }
}

/// A line of all members, combined in the order of ranks.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_line(const Lane<Group>& lane, const LinePlace& place,
                                                                    Reduction reduction, Timeout timeout,
                                                                    machine::PacketPair& result) {
  const std::uint32_t members = lane.context().size;
  Partial<T, machine::PacketPair> partial;
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < members; first += line_peers) {
    machine::PacketPair words[line_peers];
    bool exists[line_peers];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k) exists[k] = place.exists && first + k < members;
    const Status status = receive_lines(lane, first, place.line, place.thread, exists, words, timeout);
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

/// A reduced line of each part, from its owner, into the destination.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status collect_line(const Lane<Group>& lane,
                                                                     const LinedVector<T>& destination,
                                                                     const LinedParts& parts, const LinePlace& place,
                                                                     Timeout timeout) {
  const std::uint32_t members = lane.context().size, from = lane.area_lines() / 2 + place.line;
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < members; first += line_peers) {
    machine::PacketPair words[line_peers];
    bool exists[line_peers];
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      exists[k] = first + k < members && place.line < parts.lines(first + k);
    const Status status = receive_lines(lane, first, from, place.thread, exists, words, timeout);
    if (status != Status::ok) return status;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      if (exists[k]) destination.store(parts.first(first + k), place, words[k]);
  }
  return Status::ok;
}

/// One round: everyone sends everything to all, and reduces. The vector fits an area.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status one_shot_lines(const Lane<Group>& lane,
                                                                       const LinedVector<T>& destination,
                                                                       const LinedVector<const T>& source, bool is_new,
                                                                       Reduction reduction, Timeout timeout) {
  const LinedParts whole(source.words(), 1);
  Status status = Status::ok;
  if (is_new)
    for_each_line(lane.group(), whole.lines(0), [&](std::uint32_t line, std::uint32_t thread, bool exists) {
      send_parts<true>(lane, source, whole, {line, thread, exists});
    });
  for_each_line(lane.group(), whole.lines(0), [&](std::uint32_t line, std::uint32_t thread, bool exists) {
    if (status != Status::ok) return;  // the same on the whole warp
    machine::PacketPair result;
    status = reduce_line<T>(lane, {line, thread, exists}, reduction, timeout, result);
    if (status == Status::ok && exists) destination.store(0, {line, thread, exists}, result);
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
  const Context& ctx = lane.context();
  const LinedParts parts(source.words(), ctx.size);
  Status status = Status::ok;
  if (is_new)
    for_each_line(lane.group(), parts.lines(0), [&](std::uint32_t line, std::uint32_t thread, bool exists) {
      send_parts<false>(lane, source, parts, {line, thread, exists});
    });
  for_each_line(lane.group(), parts.lines(ctx.rank), [&](std::uint32_t line, std::uint32_t thread, bool exists) {
    if (status != Status::ok) return;
    const LinePlace place{line, thread, exists};
    machine::PacketPair result;
    status = reduce_line<T>(lane, place, reduction, timeout, result);
    if (status != Status::ok) return;
    for (std::uint32_t step = 1; step <= ctx.size; ++step)
      send_line(lane, peer_ahead(ctx, step), lane.area_lines() / 2 + line, place, result);
  });
  for_each_line(lane.group(), parts.lines(0), [&](std::uint32_t line, std::uint32_t thread, bool exists) {
    if (status == Status::ok) status = collect_line(lane, destination, parts, {line, thread, exists}, timeout);
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
