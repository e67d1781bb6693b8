// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Algorithms through the channel's memory: chunk by chunk, each in steps with a barrier in each step.

#include "beeline/collectives/impl/schedule/direct.hpp"

namespace beeline::detail {

/// Runs `steps` over `count` elements.
///   steps.most()                     elements of a chunk
///   steps.number()                   steps of a chunk
///   steps.before(step, done, count)  what this member writes into others' memory: elements [done, done + count)
///   steps.after(step, done, count)   what it makes of what others have written
/// All threads of the group call those; what they wrote is visible to each other in the next.
template <class Group, class Steps>
[[nodiscard]] BEELINE_HOST_DEVICE Status run_steps(Session<Group>& session, Steps& steps, std::size_t count,
                                                   Timeout timeout) {
  if (session.stage() == 0) {
    // Nobody uses the channel's memory for an earlier call any more.
    if (const Status status = session.barrier(Order::memory, timeout); status != Status::ok) return status;
    session.set_stage(1);
  }
  const std::size_t most = steps.most();
  for (std::size_t done = session.offset(); done < count;) {
    const std::size_t some = count - done < most ? count - done : most;
    // Stages are odd before a step's writes, even behind them.
    for (std::uint32_t step = (session.stage() - 1) / 2; step < steps.number(); ++step) {
      if (session.stage() % 2 != 0) {
        session.group().sync();
        steps.before(step, done, some);
        session.set_stage(2 * step + 2);
      }
      if (const Status status = session.barrier(Order::memory, timeout); status != Status::ok) return status;
      steps.after(step, done, some);
      session.set_stage(2 * step + 3);
    }
    done += some;
    session.set_offset(done);
    session.set_stage(1);
  }
  session.group().sync();  // the whole result is there
  session.set_stage(0);
  session.set_offset(0);
  return Status::ok;
}

}  // namespace beeline::detail
