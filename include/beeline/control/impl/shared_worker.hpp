// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A worker of a host rank whose tasks its own thread and other threads of the rank run in turns
/// (control/run_tasks.hpp).

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>

#include "beeline/control/impl/task_worker.hpp"

namespace beeline::detail {

/// The turns of a worker: one thread at a time runs its tasks. While other threads call, the worker's own thread
/// sleeps, so that it does not take the core from them.
class TaskTurns {
 public:
  /// Begins a turn of the worker's own thread. Returns false if other threads have called since the last look: it has
  /// then slept for `stand_back_us`. Rethrows an exception of a task that another thread ran.
  [[nodiscard]] BEELINE_HOST_DEVICE bool begin() {
#if BEELINE_ON_GPU
    return true;  // never called: host ranks have these workers
#else
    const std::uint64_t calls = calls_.load(std::memory_order_relaxed);
    const bool is_called = calls != seen_;
    seen_ = calls;
    if (!is_called && take()) return true;
    if (has_failed_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
    std::this_thread::sleep_for(std::chrono::microseconds(stand_back_us));
    return false;
#endif
  }
  /// Begins a turn of another thread. Returns false if a thread has the turn.
  [[nodiscard]] bool begin_call() {
    if (!take()) return false;
    calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  }
  BEELINE_HOST_DEVICE void end() {
#if !BEELINE_ON_GPU
    is_taken_.store(false, std::memory_order_release);
#endif
  }
  /// Ends all turns, since a task has thrown `failure`. The worker's own thread ends the team.
  void fail(std::exception_ptr failure) {
    failure_ = std::move(failure);
    has_failed_.store(true, std::memory_order_release);
  }

 private:
  /// Long enough that sleep and wake take less than 1 % of a core; the longest delay of a task when calls end.
  static constexpr std::uint32_t stand_back_us = 500;

  [[nodiscard]] bool take() {
    return !is_taken_.load(std::memory_order_relaxed) && !is_taken_.exchange(true, std::memory_order_acquire);
  }

  alignas(64) std::atomic<bool> is_taken_{false};
  std::atomic<bool> has_failed_{false};
  std::atomic<std::uint64_t> calls_{0};  ///< turns of other threads; written in a turn
  std::exception_ptr failure_;
  std::uint64_t seen_ = 0;  ///< calls that the worker's own thread has seen
};

/// Whether this thread runs tasks, as a worker or in a call of `run_tasks`: a task that called it again might wait for
/// itself.
inline bool& is_running_tasks() {
  thread_local bool is_running = false;
  return is_running;
}

/// A worker of a host rank.
template <class List>
class SharedTaskWorker {
 public:
  SharedTaskWorker(const Context& ctx, const TaskService& service, std::uint32_t worker)
      : ctx_(ctx), service_(service), alone_(1, ctx.deadline_ns, ctx.polling), group_(&alone_, 0),
        worker_(group_, ctx_, service_, service.targets, worker, scratch_) {}
  SharedTaskWorker(const SharedTaskWorker&) = delete;
  SharedTaskWorker& operator=(const SharedTaskWorker&) = delete;

  /// Runs tasks until the queues are closed or the team is aborted. The worker's own thread calls it.
  void serve() {
    is_running_tasks() = true;
    if constexpr (List::has_kernels) {  // no other thread runs kernels
      EveryTurn turns;
      worker_.serve(turns);
    } else {
      worker_.serve(turns_);
    }
  }
  /// Begins a turn of another thread than the worker's. Returns false if a thread has the turn.
  [[nodiscard]] bool begin_call() { return turns_.begin_call(); }
  /// Ends it, unless the worker has ended in it.
  void end_call() {
    if (!has_ended_) turns_.end();
  }
  /// Runs up to `most` tasks that have arrived, in a turn. Returns how many; 0 in a task.
  std::uint32_t run(std::uint32_t most) {
    bool& is_running = is_running_tasks();
    std::uint32_t ran = 0;
    if (is_running || has_ended_) return ran;
    is_running = true;
    try {
      has_ended_ = !worker_.serve_some(most, ran);
    } catch (...) {  // of any type, since the task's function is user code
      has_ended_ = true;
      turns_.fail(std::current_exception());
    }
    is_running = false;
    return ran;
  }

 private:
  TaskTurns turns_;
  bool has_ended_ = false;  ///< the team is aborted, or a task has thrown; changes in a turn
  const Context ctx_;
  const TaskService service_;
  HostTeamState alone_;
  const HostTeam group_;
  TaskScratch scratch_;
  TaskWorker<List, HostTeam> worker_;
};

}  // namespace beeline::detail
