// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How the workers of a GPU end a lease: all together.

#include <cstddef>
#include <cstdint>

#include "beeline/core/task.hpp"
#include "beeline/device/impl/atomic_word.hpp"
#include "beeline/device/impl/machine.hpp"
#include "beeline/device/wait.hpp"

namespace beeline::detail {

/// The tasks of a rank that wait for a slot.
struct WaitingTasks {
  const TaskTickets* own;  ///< this rank's own ring of queue 0
  std::uint32_t queues, members;

  [[nodiscard]] BEELINE_HOST_DEVICE bool are_any() const {
    bool any = false;
    for (std::uint32_t queue = 0; queue < queues; ++queue) {
      const DeviceAtomic<std::uint64_t> waiting(const_cast<std::uint64_t&>(own[std::size_t{queue} * members].waiting));
      any |= waiting.load(std::memory_order_relaxed) != 0;
    }
    return any;
  }
};

/// The state that the workers of a lease share, in their GPU's memory. Each field is used by one thread of each worker.
///
/// A worker whose time is over rests until all workers rest. If it ended, tasks of its queue would wait for the next
/// lease, which begins when all workers have ended. A worker whose task waits for a slot at another rank might then
/// wait for tasks of that rank, which wait for a slot of the queue that no worker serves.
struct TaskLease {
  std::uint64_t last_task;  ///< time at which the last task was run by any worker
  std::uint64_t workers;    ///< number of workers that rest, and, in the upper half, that run

  static constexpr std::uint64_t resting = 1, running = std::uint64_t{1} << 32;
  /// Time in which other workers may come to rest before a worker serves its rings again.
  static constexpr std::uint64_t rest_ns = 20'000;

  BEELINE_HOST_DEVICE void begin() { word().fetch_add(running, std::memory_order_relaxed); }
  /// Called by a worker that ends because its team is aborted.
  BEELINE_HOST_DEVICE void leave() { word().fetch_add(0 - running, std::memory_order_relaxed); }
  /// Rests. Returns true if the worker ends: all workers rest, or the team is aborted. Returns false if it has to serve
  /// its rings, since a worker is in a task that waits.
  BEELINE_COLD BEELINE_HOST_DEVICE bool end(const Context& ctx, WaitingTasks waiting) {
    std::uint64_t seen = word().fetch_add(resting, std::memory_order_relaxed) + resting;
    std::uint64_t since = machine::clock_ns();
    for (std::uint32_t polls = 0;; ++polls) {
      const std::uint64_t now = machine::clock_ns(), before = seen;
      const bool all_rest = seen / running == seen % running;
      const bool serves = !all_rest && now - since >= rest_ns && waiting.are_any();
      const std::uint64_t left = seen - resting - (serves ? 0 : running);
      const bool leaves = all_rest || serves || read_abort_word(ctx) != 0;
      if (leaves && word().compare_exchange_strong(seen, left, std::memory_order_relaxed)) return !serves;
      machine::back_off(polls, ctx.polling);
      seen = word().load(std::memory_order_relaxed);
      if (seen != before) since = now;
    }
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE DeviceAtomic<std::uint64_t> word() { return DeviceAtomic<std::uint64_t>(workers); }
};

}  // namespace beeline::detail
