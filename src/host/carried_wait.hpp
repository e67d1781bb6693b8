// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a stream's kernel waits for what it has posted to the rank's engine.

#include <cstdint>

#include "beeline/device/impl/route.hpp"

namespace beeline::detail {

/// As `drain_route` of the queue that streams use, with an error that names `peer` on a GPU, too. Every thread calls
/// it. An abort does not end it: who frees the memory after an error finds that the engine uses it no longer.
///   operation  quiet: what was posted before is in place; flush: its sources may be reused
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
    constexpr bool heeds_abort = false;
    status = await_engine(ctx, {heeds_abort}, [&] {
      observed = DoneCount{load_acquired(done)}.commands();
      return observed >= posted;
    });
    if (status != Status::ok) give_up_on_engine(ctx, {operation, Verb::put, 0, 0, 0, peer}, posted, observed, status);
  }
  return agree_on_engine(group, status);
}

}  // namespace beeline::detail
