// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reduce and reduce-scatter in packets: to the root, or to the owner of each part, who reduces them as they come.

#include "beeline/collectives/impl/reduction_plan.hpp"

namespace beeline::detail {

/// One round: `count` elements from `done` on, of each part, that fit an area.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_round(Session<Group>& session, const ReductionPlan<T>& plan,
                                                      std::size_t done, std::size_t count, Timeout timeout) {
  const Context& ctx = session.context();
  const std::uint32_t thread = session.group().thread_rank(), threads = session.group().size();
  bool is_new = false;
  if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
  const auto words = static_cast<std::uint32_t>(words_of<T>(count));
  const bool to_itself = session.sends_to_itself(timeout, is_new);
  const auto word_for = [&](std::uint32_t peer, std::uint32_t i) {
    return load_word(plan.source + (plan.scatters ? peer * plan.part_step : 0) + done, i, count);
  };
  const std::uint32_t receivers = plan.scatters ? ctx.size : 1;
  for (std::uint32_t step = 0; is_new && step < receivers; ++step) {  // everyone begins with another
    const std::uint32_t peer = plan.scatters ? peer_ahead(ctx, step + 1) : plan.root;
    if (peer == ctx.rank && !to_itself) continue;
    for (std::uint32_t i = thread; i < words; i += threads) session.send_word(peer, i, word_for(peer, i));
  }
  const std::uint32_t mine = plan.is_received_by(ctx.rank) ? words : 0;
  Status status = Status::ok;
  for (std::uint32_t i = thread; i < mine && status == Status::ok; i += threads) {
    std::uint64_t result = 0, own = to_itself ? 0 : word_for(ctx.rank, i);
    status = ReceivedWords<T, Group>(session, i, to_itself ? nullptr : &own).reduce(plan.reduction, timeout, result);
    if (status == Status::ok) store_word(plan.destination + done, i, count, result);
  }
  return plan.scatters ? session.finish(status) : session.finish_one_way(status);
}

/// Of any count, in as many rounds as it needs.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_packets(Session<Group>& session, const ReductionPlan<T>& plan,
                                                        Timeout timeout) {
  const std::size_t most = std::size_t{session.area_words()} * (8 / sizeof(T));
  const Status result = in_rounds(session, plan.count, most, [&](std::size_t done, std::size_t some) {
    return reduce_round(session, plan, done, some, timeout);
  });
  if (result == Status::ok) session.group().sync();  // all of it is there
  return result;
}

}  // namespace beeline::detail
