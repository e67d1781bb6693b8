// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The barrier of a team with members that loads and stores do not reach: an engine stores the words of these members.
/// All of this is out of line, so that it takes no registers from the barrier by loads and stores (device/barrier.hpp),
/// and in several functions, since a kernel's registers are those of its deepest call.

#include <cstdint>

#include "beeline/device/impl/deadline_extension.hpp"
#include "beeline/device/impl/route.hpp"
#include "beeline/device/signal.hpp"

namespace beeline::detail {

/// Number of commands that were posted to a queue, or are being written. Relaxed, since the caller has synchronized
/// with their posters, and an acquiring load would drop the multiprocessor's first-level cache, which holds the routes:
/// they are across the bus.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t posted_to(CommandQueue queue) {
  return TicketWord(queue.tickets->next).load(std::memory_order_relaxed);
}

/// Stores this rank's epoch in a word of a peer. One thread calls it, like all functions here but the last.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status store_epoch(const Context& ctx, PaddedWord& word, std::uint32_t peer,
                                                           Order order) {
  const std::uint64_t epoch = ctx.sync->entered.value;
  const AccessToPeer to = ctx.access_to(peer);
  if (to.access == PeerAccess::direct) {
    store_signal(ctx.translate(&word.value, to.place), epoch, order);
    return Status::ok;
  }
  if (to.access == PeerAccess::refused) return refuse_route(ctx, Operation::barrier, peer);
  const Request request{Operation::barrier, Verb::store, sizeof epoch, 0, 0, peer};
  const CommandQueue queue = ctx.routes->queue(0);
  const CommandFields fields = word_fields(ctx, request, &word.value, epoch);
  SystemAtomic<std::uint64_t> drained(ctx.sync->drained.value);  // of all blocks whose sessions meet
  const std::uint64_t before = posted_to(queue);
  const Status status = command_engine(ctx, queue, fields).status;
  // If it got another ticket, another thread has posted in between.
  if (status == Status::ok && drained.load(std::memory_order_acquire) == before && posted_to(queue) == before + 1)
    drained.store(before + 1, std::memory_order_release);
  return status;
}

/// Waits until a word of this rank has the epoch, which `peer` stores there.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status await_epoch(const Context& ctx, PaddedWord& word, std::uint32_t peer,
                                                           Order order, Timeout timeout) {
  const std::uint64_t epoch = ctx.sync->entered.value;
  const Awaited awaited{Operation::barrier, peer, epoch, epoch};
  return await_word(ctx, awaited, timeout, SystemAtomic<std::uint64_t>(word.value), order,
                    [epoch](std::uint64_t observed) { return observed >= epoch; });
}
/// As `await_epoch`, in a round of a dissemination barrier. The member that is awaited in a later round may wait, too:
/// CPU threads wait longer for it, so that the member that waits for an absent one reports first. GPUs do not, since a
/// copy of the context would be in local memory.
BEELINE_HOST_DEVICE inline Status await_epoch_of_round(const Context& ctx, std::uint32_t round, std::uint32_t peer,
                                                       Order order, Timeout timeout) {
  if constexpr (executor == DeviceKind::host)
    return await_epoch(extend_deadline(ctx, round), ctx.sync->rounds[round], peer, order, timeout);
  else
    return await_epoch(ctx, ctx.sync->rounds[round], peer, order, timeout);
}

/// Waits until the engine has completed a queue's commands. A CPU thread wakes the engine only if some are not. A GPU,
/// which reads the engine's count across the bus, reads it only if something was posted since it last waited here.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status drain_one_queue(const Context& ctx, CommandQueue queue,
                                                               Timeout timeout) {
  const std::uint64_t posted = posted_to(queue);
  const TicketWord known(queue.tickets->completed);
  if constexpr (executor == DeviceKind::host) {
    if (DoneCount{load_acquired(queue.ring->completed.value)}.commands() >= posted) return Status::ok;
    wake_engine_of(queue);
  } else if (DoneCount{known.load(std::memory_order_relaxed)}.commands() >= posted) {
    return Status::ok;
  }
  const Fetched drained = drain_queue(ctx, Operation::quiet, queue, {true, timeout});
  if (executor == DeviceKind::gpu && drained.status == Status::ok)
    known.store(DoneCount::of(posted, drained.value != 0).word, std::memory_order_relaxed);
  return drained.status;
}

/// Waits until the engine has completed what this rank's threads have posted to any queue. It does not wait for signals
/// of this member's earlier barriers if nothing else was posted since: nobody reads anything that such a signal writes
/// before the signal of the next barrier, which the engine stores after it.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status drain_all_queues(const Context& ctx, Timeout timeout) {
  SystemAtomic<std::uint64_t> drained(ctx.sync->drained.value);
  const std::uint64_t last = drained.load(std::memory_order_acquire);
  const std::uint64_t posted = posted_to(ctx.routes->queue(0));
  const bool is_drained = last == posted;
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (std::uint32_t queue = is_drained ? 1 : 0; queue < command_rings && status == Status::ok; ++queue)
    status = drain_one_queue(ctx, ctx.routes->queue(queue), timeout);
  if (status == Status::ok && !is_drained) drained.store(posted, std::memory_order_release);
  return status;
}

/// epoch * most_barrier_steps + number of the next step (a member, or a round) in which this member stores the epoch: a
/// call that continues after a time-out goes on there. It is in this member's own word of `arrived_from`, which no
/// other member writes.
inline constexpr std::uint64_t most_barrier_steps = 128;
static_assert(most_barrier_steps > max_node_ranks && most_barrier_steps > max_barrier_rounds);
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t& barrier_progress(const Context& ctx) {
  std::uint64_t& word = ctx.sync->arrived_from[ctx.rank - ctx.first_place].value;
  const std::uint64_t start = ctx.sync->entered.value * most_barrier_steps;
  if (word < start) word = start;
  return word;
}

/// Every member stores its epoch at every other member.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status store_at_all(const Context& ctx, Order order) {
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (std::uint64_t* progress = &barrier_progress(ctx); status == Status::ok; ++*progress) {
    const auto peer = static_cast<std::uint32_t>(*progress % most_barrier_steps);
    if (peer == ctx.size) return Status::ok;
    if (peer != ctx.rank) status = store_epoch(ctx, ctx.sync->arrived_from[ctx.rank], peer, order);
  }
  return status;
}
BEELINE_COLD BEELINE_HOST_DEVICE inline Status await_all(const Context& ctx, Order order, Timeout timeout) {
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < ctx.size && status == Status::ok; ++peer)
    if (peer != ctx.rank) status = await_epoch(ctx, ctx.sync->arrived_from[peer], peer, order, timeout);
  return status;
}

/// As `store_at_all` and `await_all`, for teams with more members than there are words: a dissemination barrier. In
/// round r each member stores its epoch at the member 2^r after it, so after the last round every member knows that all
/// have entered.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status meet_many(const Context& ctx, Order order, Timeout timeout) {
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (std::uint32_t round = 0; 1u << round < ctx.size && status == Status::ok; ++round) {
    const std::uint32_t ahead = (ctx.rank + (1u << round)) % ctx.size;
    const std::uint32_t behind = (ctx.rank + ctx.size - (1u << round)) % ctx.size;
    if (barrier_progress(ctx) % most_barrier_steps <= round) {
      status = store_epoch(ctx, ctx.sync->rounds[round], ahead, order);
      ++barrier_progress(ctx);
    }
    if (status == Status::ok) status = await_epoch_of_round(ctx, round, behind, order, timeout);
  }
  return status;
}

/// Enters the next epoch, unless an earlier call that timed out has entered it.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status enter_by_routes(const Context& ctx, Order order, Timeout timeout) {
  if (ctx.sync->entered.value != ctx.sync->completed.value) return Status::ok;
  // What this rank has written by any queue is complete before any member leaves.
  if (order == Order::memory)
    if (const Status drained = drain_all_queues(ctx, timeout); drained != Status::ok) return drained;
  ++ctx.sync->entered.value;
  return Status::ok;
}

/// The part of one thread in `barrier_by_routes`.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status meet_by_routes(const Context& ctx, Order order, Timeout timeout) {
  if (const Status entered = enter_by_routes(ctx, order, timeout); entered != Status::ok) return entered;
  Status status = Status::ok;
  if (ctx.size > max_node_ranks) {
    status = meet_many(ctx, order, timeout);
  } else {
    status = store_at_all(ctx, order);
    if (status == Status::ok) status = await_all(ctx, order, timeout);
  }
  if (status == Status::ok) ctx.sync->completed.value = ctx.sync->entered.value;
  return status;
}

/// `Barrier::sync` for a context with routes; its epochs are in memory between the calls. Every thread of the group
/// calls it.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status barrier_by_routes(Group group, const Context& ctx, Order order,
                                                          Timeout timeout) {
  group.sync();  // the rest of the group has done its work
  return agree(group, group.thread_rank() == 0 ? meet_by_routes(ctx, order, timeout) : Status::ok);
}

}  // namespace beeline::detail
