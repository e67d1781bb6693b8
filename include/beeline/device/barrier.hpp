// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Barrier of a team from inside kernels and CPU threads: every member writes one word to every other member
/// (all-to-all), by a store, or by its engine where loads and stores do not reach the member.

#include <cstdint>

#include "beeline/device/impl/barrier_by_routes.hpp"
#include "beeline/device/signal.hpp"

namespace beeline {

/// A team's barrier, opened by one group of each member. The epoch is in registers, so that a round costs one store to
/// each peer and one poll for each peer. The epoch is also kept in memory for later kernels.
///
/// At most one group of a rank has a team's barrier open at a time.
template <class Group>
class Barrier {
 public:
  /// Every thread of `group` calls it.
  BEELINE_HOST_DEVICE Barrier(const Group& group, const Context& ctx) : group_(group), ctx_(ctx) {
    group_.sync();  // the epochs that an earlier barrier of this group wrote are visible; `enter` syncs before it
                    // changes them
    entered_ = ctx.sync->entered.value;
    completed_ = ctx.sync->completed.value;
    if (ctx.has_routes != 0) [[unlikely]] {
      first_ = Status::unreachable;
      ++entered_;  // `sync` then enters no round
    }
  }

  /// Blocks until every member has called `sync` as often as this member.
  ///   order    memory: writes of every member before the call are visible to all members after it; relaxed: execution
  ///            only
  ///   timeout  the call's own limit; after `timeout` the same call continues the same round
  /// Every thread of the group calls it, and gets the same status: ok, timeout, deadline, aborted; unreachable if there
  /// is no route to some member (refused: see access.hpp). With `Order::memory` the call waits until the engine has
  /// completed what this rank's threads have posted to any queue. Source: seed 000 section 6.7; OpenSHMEM 1.5 sync
  /// (relaxed) and barrier (memory).
  [[nodiscard]] BEELINE_HOST_DEVICE Status sync(Order order = Order::memory, Timeout timeout = Timeout::none()) {
    if (entered_ == completed_) enter(order);
    Status status = first_;
    for (std::uint32_t peer = group_.thread_rank(); peer < ctx_.size && status == Status::ok; peer += group_.size())
      status = await(peer, order, timeout);
    status = agree(group_, status);
    if (status == Status::ok) {
      completed_ = entered_;
      if (group_.thread_rank() == 0) ctx_.sync->completed.value = completed_;
    }
    if (status == Status::unreachable) [[unlikely]]
      return detail::barrier_by_routes(group_, ctx_, order, timeout);
    return status;
  }

 private:
  BEELINE_HOST_DEVICE void enter(Order order) {
    ++entered_;
    group_.sync();  // the rest of the group has done its work, and has read the epochs
    if (group_.thread_rank() == 0) ctx_.sync->entered.value = entered_;
    std::uint64_t* mine = &ctx_.sync->arrived_from[ctx_.rank].value;
    for (std::uint32_t peer = group_.thread_rank(); peer < ctx_.size; peer += group_.size())
      if (peer != ctx_.rank) detail::store_signal(ctx_.translate(mine, peer), entered_, order);
  }

  BEELINE_HOST_DEVICE Status await(std::uint32_t peer, Order order, Timeout timeout) {
    if (peer == ctx_.rank) return Status::ok;
    const Awaited awaited{Operation::barrier, peer, entered_, entered_};
    const detail::SystemAtomic<std::uint64_t> flag(ctx_.sync->arrived_from[peer].value);
    const std::uint64_t epoch = entered_;
    return detail::await_word(ctx_, awaited, timeout, flag, order,
                              [epoch](std::uint64_t observed) { return observed >= epoch; });
  }

  Group group_;
  const Context& ctx_;
  std::uint64_t entered_ = 0, completed_ = 0;
  Status first_ = Status::ok;  ///< unreachable with routes: `sync` then waits for nothing here, and ends out of line
};

/// One round of the team's barrier; see `Barrier::sync`. Loops should keep a `Barrier` instead.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status barrier(const Group& group, const Context& ctx, Order order = Order::memory,
                                                 Timeout timeout = Timeout::none()) {
  return Barrier<Group>(group, ctx).sync(order, timeout);
}

}  // namespace beeline
