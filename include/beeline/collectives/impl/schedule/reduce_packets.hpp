// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reduce and reduce-scatter in packets: the first of two shots. Units go to the root, or to the owner of each part,
/// which combines them as they arrive.

#include "beeline/collectives/impl/protocol/ll.hpp"
#include "beeline/collectives/impl/reduction_plan.hpp"

namespace beeline::detail {

/// The data that each member gets in a round: `count` elements of its part (or of the vector), from `done` on.
template <class Round, class T>
struct ReductionParts {
  using Vector = typename Round::template Vector<const T>;
  const ReductionPlan<T>& plan;
  std::size_t done;
  std::uint32_t count;

  [[nodiscard]] BEELINE_HOST_DEVICE VectorPart<Vector> of(std::uint32_t peer) const {
    const Vector vector(plan.source + (plan.scatters() ? peer * plan.part_step : 0) + done, count);
    const bool is_sent = plan.scatters() || plan.call.root == peer;
    return {vector, 0, is_sent ? UnitParts<Round::unit_words>::units_of(vector.words()) : 0};
  }
};

/// One thread for each member that gets no data sends it a word. If this member gets no data, it waits for the words of
/// all members (`hear_others`).
template <class Round, class T, class Group>
BEELINE_HOST_DEVICE void greet_others(const Session<Group>& session, const Round& round, const ReductionPlan<T>& plan) {
  const Context& ctx = session.context();
  for (std::uint32_t peer = session.group().thread_rank(); peer < ctx.size; peer += session.group().size())
    if (peer != ctx.rank && peer != plan.call.root) round.greet(peer);
}
template <class Round, class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status hear_others(const Session<Group>& session, const Round& round,
                                                     const ReductionPlan<T>& plan) {
  const Context& ctx = session.context();
  if (ctx.rank == plan.call.root) return Status::ok;
  Status status = Status::ok;
  for (std::uint32_t peer = session.group().thread_rank(); peer < ctx.size && status == Status::ok;
       peer += session.group().size())
    if (peer != ctx.rank) status = round.hear(peer);
  return status;
}

/// Reduces any number of elements, in as many rounds as needed.
template <class Protocol, class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_packets(Session<Group>& session, const ReductionPlan<T>& plan,
                                                        Timeout timeout) {
  using Round = PacketRound<Protocol, Group>;
  if (const Status status = session.begin(plan.call); status != Status::ok) return status;
  const std::size_t most = std::size_t{Round::area_units(session)} * Round::unit_words * (8 / sizeof(T));
  const Status result = in_rounds(session, plan.count, most, [&](std::size_t done, std::size_t some) {
    const auto count = static_cast<std::uint32_t>(some);
    bool is_new = false;
    if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
    const Round round(session, timeout, is_new, session.sends_to_itself(timeout, is_new));
    const ReductionParts<Round, T> parts{plan, done, count};
    if (is_new) round.send_parts(parts, 0);
    const bool greets = !plan.scatters() && all_speak(session.context());
    if (is_new && greets) greet_others(session, round, plan);
    const typename Round::template Vector<T> destination(plan.destination + done, count);
    Status status = combine_units<T>(round, parts.of(session.context().rank), 0, plan.call.reduction,
                                     [&](const auto& place, auto whole, const auto& combined, bool) {
                                       if (place.exists) destination.template store<whole()>(0, place, combined);
                                     });
    if (status == Status::ok && greets) status = hear_others(session, round, plan);
    return plan.scatters() || greets ? session.finish(status) : session.finish_one_way(status);
  });
  if (result == Status::ok) session.group().sync();  // the whole result has arrived
  return result;
}

}  // namespace beeline::detail
