// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Broadcast and reduce in lines (LL128), between GPUs: the vector is cut into a part for each member but the root, so
/// that the root's link carries the vector once, and a line is sent on as soon as it has arrived.
///
///     broadcast   root --part k--> member k --> the other members
///     reduce      all  --part k--> member k, which combines it --> root
///
/// A part has at least one line, possibly without data. So every member receives a line from every other member in a
/// round, and lines need not be acknowledged. Source: seed 000, 6.8.3 (work sharing).

#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/collectives/impl/protocol/ll128.hpp"
#include "beeline/collectives/impl/reduction_plan.hpp"

namespace beeline::detail {

/// A vector's parts for all members except the root.
template <class Vector>
class PartsBesideRoot {
 public:
  using Cut = UnitParts<line_words>;

  BEELINE_HOST_DEVICE PartsBesideRoot(const Vector& vector, std::uint32_t members, std::uint32_t root)
      : vector_(vector), cut_(vector.words(), members - 1), root_(root) {}

  [[nodiscard]] BEELINE_HOST_DEVICE VectorPart<Vector> of(std::uint32_t member) const {
    if (member == root_) return {vector_, 0, 0};
    const std::uint32_t index = number_beside(root_, member);
    return {vector_, cut_.first(index), at_least_one(cut_.units(index))};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t most() const { return at_least_one(cut_.units(0)); }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t at_least_one(std::uint32_t units) {
    return units == 0 ? 1 : units;
  }
  Vector vector_;
  Cut cut_;
  std::uint32_t root_;
};

/// The first line of each member except the root, without data.
struct FirstLines {
  std::uint32_t root;

  [[nodiscard]] BEELINE_HOST_DEVICE auto of(std::uint32_t member) const {
    return VectorPart<LinedVector<std::byte>>{{nullptr, 0}, 0, member == root ? 0u : 1u};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t most() const { return 1; }
};

/// Calls `run(round, done, some)` for `count` elements, at most as many at a time as an area holds, with two or more
/// members. Returns invalid_argument if the group cannot send lines.
template <class T, class Group, class Run>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status in_rooted_rounds(Session<Group>& session,
                                                                         const CallDescription& call, std::size_t count,
                                                                         Timeout timeout, const Run& run) {
  using Round = PacketRound<LL128, Group>;
  if (!Round::serves(session)) return Status::invalid_argument;
  if (const Status status = session.begin(call); status != Status::ok) return status;
  const std::size_t most =
      std::size_t{Round::area_units(session)} / 2 * (session.context().size - 1) * line_words * (8 / sizeof(T));
  const Status result = in_rounds(session, count, most, [&](std::size_t done, std::size_t some) {
    bool is_new = false;
    if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
    return session.finish(run(Round(session, timeout, is_new, false), done, static_cast<std::uint32_t>(some)));
  });
  if (result == Status::ok) session.group().sync();  // the whole result has arrived
  return result;
}

/// A broadcast of any size. After a time-out the whole round is repeated, since received lines are still in the area.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status broadcast_in_lines(Session<Group>& session,
                                                                           const MovementPlan& plan, Timeout timeout) {
  const Context& ctx = session.context();
  const std::uint32_t root = plan.call.root;
  return in_rooted_rounds<std::byte>(
      session, plan.call, plan.bytes, timeout, [&](const auto& round, std::size_t done, std::uint32_t some) {
        if (ctx.rank == root) {
          const LinedVector<const std::byte> source(plan.source + done, some);
          if (round.is_new()) round.send_parts(PartsBesideRoot(source, ctx.size, root), 0);
          if (done == 0) copy_own_piece(session.group(), OwnPiece(ctx, plan));
          return round.receive_parts(round.half(), FirstLines{root}, 0);
        }
        const PartsBesideRoot parts(LinedVector<std::byte>(plan.destination + done, some), ctx.size, root);
        const auto mine = parts.of(ctx.rank);
        const Status status = round.for_each(mine.units, 0, [&](const LinePlace& place, auto) {
          machine::PacketPair words{};
          const Status come = round.receive_from(root, place, words);
          if (come != Status::ok) return come;
          if (place.exists) mine.template store<false>(place, words);
          round.send_on_to(place, round.half(), words,
                           [&](std::uint32_t peer) { return peer != root || place.unit == 0; });
          return come;
        });
        return status == Status::ok ? round.receive_parts(round.half(), parts, 0) : status;
      });
}

/// A reduce of any count; each part is combined in the order of ranks.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_in_lines(Session<Group>& session,
                                                                        const ReductionPlan<T>& plan, Timeout timeout) {
  const Context& ctx = session.context();
  const std::uint32_t root = plan.call.root;
  return in_rooted_rounds<T>(
      session, plan.call, plan.count, timeout, [&](const auto& round, std::size_t done, std::uint32_t some) {
        const PartsBesideRoot parts(LinedVector<const T>(plan.source + done, some), ctx.size, root);
        if (round.is_new()) round.send_parts(parts, 0);
        if (ctx.rank == root) {
          const LinedVector<T> destination(plan.destination + done, some);
          return round.receive_parts(round.half(), PartsBesideRoot(destination, ctx.size, root), 0);
        }
        return combine_units<T>(round, parts.of(ctx.rank), 0, plan.call.reduction,
                                [&](const LinePlace& place, auto, const machine::PacketPair& result, bool) {
                                  round.send_on_to(place, round.half(), result,
                                                   [&](std::uint32_t peer) { return peer == root; });
                                });
      });
}

}  // namespace beeline::detail
