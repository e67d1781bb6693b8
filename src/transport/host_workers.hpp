// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Threads for what must run at once on a host rank: the blocks of a grid that waits, and the threads of a block.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace beeline {

/// Made when they are first needed, kept for the next grid. Who comes first takes the next task, so that tasks which do
/// not wait for each other are over before most threads have woken up.
class HostWorkers {
 public:
  HostWorkers() = default;
  HostWorkers(const HostWorkers&) = delete;
  HostWorkers& operator=(const HostWorkers&) = delete;
  ~HostWorkers();

  /// Runs `task(0)` to `task(count - 1)`, which may wait for each other and throw nothing: on the calling thread, and
  /// on as many others as that takes. Returns when all are over. One call at a time. Throws no_resource, before any has
  /// begun, where the system gives no threads.
  void run(unsigned count, const std::function<void(unsigned)>& task);

 private:
  void provide(unsigned threads);
  void serve();
  /// Takes tasks while there are any.
  void work(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable wake_, over_;
  const std::function<void(unsigned)>* task_ = nullptr;
  unsigned count_ = 0, next_ = 0, unfinished_ = 0;
  bool waking_ = false;  ///< somebody is on the way, who takes a task and wakes the next
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace beeline
