// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Programs with a CPU thread for each device: the threads, and semaphores between them.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

namespace apps {

/// A counting semaphore whose waits end.
class Semaphore {
 public:
  void post();
  /// Waits for a post, and takes it. Throws deadline after BEELINE_DEADLINE_S, with `what` the thread waits for.
  void wait(const std::string& what);

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::size_t count_ = 0;
};

/// Calls `work(part)` for each part of [0, parts), each on a thread of its own. Returns when all have returned; throws
/// the exception that was thrown first.
void on_device_threads(std::size_t parts, const std::function<void(std::size_t part)>& work);

}  // namespace apps
