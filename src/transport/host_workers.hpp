// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Threads for what must run at once on a host rank: the blocks of a grid that waits, and the threads of a block.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "beeline/core/wait_policy.hpp"
#include "beeline/runtime/file_descriptor.hpp"

namespace beeline {

/// Made when they are first needed, kept for the next grid. Who comes first takes the next task, so that tasks which do
/// not wait for each other are over before most threads have woken up.
///
/// More threads than cores do not run at once, and to wake them costs microseconds: a task that has no core waits until
/// a thread gives one away in a wait of the library's. Tasks may wait by other means, too: a timer wakes all threads
/// `patience_ns` after the beginning of the run, or before. To set it may take 10 us (a virtual machine), so it is set
/// when it is not, and never taken back.
class HostWorkers : detail::WaitListener {
 public:
  explicit HostWorkers(long patience_ns = 1'000'000) : patience_ns_(patience_ns) {}
  ~HostWorkers();

  /// Runs `task(0)` to `task(count - 1)`, which may wait for each other and throw nothing: on the calling thread, and
  /// on as many others as that takes, so many of them from the beginning that `at_once` run. Returns when all are over.
  /// One call at a time. Throws no_resource, before any has begun, where the system gives no threads.
  void run(unsigned count, unsigned at_once, const std::function<void(unsigned)>& task);

 private:
  void provide(unsigned threads);
  void serve();
  /// Takes tasks while there are any.
  void work(std::unique_lock<std::mutex>& lock);
  /// Wakes a thread if a task has none and no thread is waking. Holds the lock.
  void wake_another();
  void on_wait() noexcept override;
  /// Wakes all threads of the run that the timer finds.
  void keep_time();
  void set_timer(long ns) const;

  const long patience_ns_;
  std::mutex mutex_;
  std::condition_variable wake_, over_;
  const std::function<void(unsigned)>* task_ = nullptr;
  unsigned count_ = 0, unfinished_ = 0;
  unsigned at_once_ = 0;              ///< tasks that get a thread before anyone waits
  std::atomic<unsigned> unbegun_{0};  ///< tasks; changes under the lock
  bool waking_ = false;               ///< a thread is waking: it takes a task and wakes the next thread
  bool is_timed_ = false;             ///< the timer is set
  bool closing_ = false;
  std::vector<std::thread> threads_;
  FileDescriptor timer_;
  std::thread timekeeper_;
};

}  // namespace beeline
