// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a stream's kernel waits for commands that it has posted to the rank's engine.

#include <cstdint>

#include "beeline/device/impl/route.hpp"

namespace beeline::detail {

/// Drains the queue that streams use, as `drain_route` does; here the error names `peer` on a GPU, too. Every thread
/// calls it. An abort ends the wait only when the engine no longer reads the sources: after an error they may be freed.
///   operation  quiet: data posted before are at their destination; flush: their sources may be reused
///   peer       rank of the team
template <class Group>
BEELINE_HOST_DEVICE Status await_carried(const Group& group, const Context& ctx, Operation operation,
                                         std::uint32_t peer) {
  const CommandQueue queue = ctx.routes->queue(QueueId{}.index);
  const bool in_place = operation == Operation::quiet;
  const std::uint64_t& done = in_place ? queue.ring->completed.value : queue.ring->reusable.value;
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    if (in_place) wake_engine_of(queue);
    const std::uint64_t posted = TicketWord(queue.tickets->next).load(std::memory_order_acquire);
    std::uint64_t observed = 0;
    bool is_aborted = false;
    constexpr bool heeds_abort = false;
    status = await_engine(ctx, {heeds_abort}, [&] {
      observed = DoneCount{load_acquired(done)}.commands();
      if (observed >= posted) return true;
      is_aborted = in_place && read_abort_word(ctx) != 0 &&
                   DoneCount{load_acquired(queue.ring->reusable.value)}.commands() >= posted;
      return is_aborted;
    });
    if (is_aborted) status = Status::aborted;
    if (status != Status::ok) give_up_on_engine(ctx, {operation, Verb::put, 0, 0, 0, peer}, posted, observed, status);
  }
  return agree_on_engine(group, status);
}

/// As `await_carried`, for the first `posted` commands of the queue. One thread calls it.
BEELINE_HOST_DEVICE inline Status await_posted(const Context& ctx, Operation operation, std::uint64_t posted,
                                               std::uint32_t peer) {
  const CommandQueue queue = ctx.routes->queue(QueueId{}.index);
  const std::uint64_t& done = operation == Operation::quiet ? queue.ring->completed.value : queue.ring->reusable.value;
  std::uint64_t observed = 0;
  constexpr bool heeds_abort = false;
  const Status status = await_engine(ctx, {heeds_abort}, [&] {
    observed = DoneCount{load_acquired(done)}.commands();
    return observed >= posted;
  });
  if (status != Status::ok) give_up_on_engine(ctx, {operation, Verb::put, 0, 0, 0, peer}, posted, observed, status);
  return status;
}

}  // namespace beeline::detail
