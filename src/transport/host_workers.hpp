// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Threads for tasks that must run concurrently on a host rank: blocks of a waiting grid, and threads of a block.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "beeline/core/wait_policy.hpp"
#include "beeline/runtime/file_descriptor.hpp"

namespace beeline {

/// Threads are made when first needed, and kept for the next grid. The first free thread takes the next task, so that
/// tasks that do not wait for each other are over before most threads have woken up.
///
/// More threads than cores do not run concurrently, and waking them costs microseconds: a task without a core starts
/// when another thread gives up its core in one of the library's waits. Tasks may also wait by other means, so a timer
/// wakes all threads at most `wake_all_ns` after the beginning of the run. Setting the timer may take 10 us (on a
/// virtual machine), so it is set only if it is not set already, and never cancelled.
class HostWorkers : detail::WaitListener {
 public:
  explicit HostWorkers(long wake_all_ns = 1'000'000) : wake_all_ns_(wake_all_ns) {}
  ~HostWorkers();

  /// Runs `task(0)` to `task(count - 1)`, which may wait for each other and must not throw: on the calling thread and
  /// as many others as needed. `at_once` tasks have threads from the beginning. Returns when all tasks are over. One
  /// call at a time. Throws no_resource, before any task has begun, if the system gives no threads.
  void run(unsigned count, unsigned at_once, const std::function<void(unsigned)>& task);

 private:
  void provide(unsigned threads);
  void serve();
  /// Runs tasks until none is left.
  void work(std::unique_lock<std::mutex>& lock);
  /// Wakes a thread if a task has none and no thread is waking. Holds the lock.
  void wake_another();
  void on_wait() noexcept override;
  /// Wakes the threads of the current run when the timer expires.
  void keep_time();
  void set_timer(long ns) const;

  const long wake_all_ns_;
  std::mutex mutex_;
  std::condition_variable wake_, over_;
  const std::function<void(unsigned)>* task_ = nullptr;
  unsigned count_ = 0, unfinished_ = 0;
  unsigned at_once_ = 0;              ///< tasks that get a thread before any task waits
  std::atomic<unsigned> unbegun_{0};  ///< tasks that have not begun; changes under the lock
  bool waking_ = false;               ///< a thread is waking: it takes a task and wakes the next thread
  bool is_timed_ = false;             ///< the timer is set
  bool closing_ = false;
  std::vector<std::thread> threads_;
  FileDescriptor timer_;
  std::thread timekeeper_;
};

}  // namespace beeline
