// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Threads that hold an object.

#include <sys/types.h>

#include <algorithm>
#include <vector>

namespace beeline::hpe::detail {

/// The threads (by `gettid`) of holds that have begun and not ended, each as often as it holds.
class HoldingThreads {
 public:
  [[nodiscard]] bool empty() const { return threads_.empty(); }
  void add(pid_t thread) { threads_.push_back(thread); }
  /// Ends a hold that `thread` has begun; if it has begun none, one of another thread, which has passed it on.
  void remove(pid_t thread) noexcept {
    const auto own = std::find(threads_.begin(), threads_.end(), thread);
    threads_.erase(own != threads_.end() ? own : threads_.begin());
  }
  /// Whether there are holds, all of one thread: if it waited for their end, no other thread would end the wait.
  [[nodiscard]] bool are_all_of(pid_t thread) const {
    return !threads_.empty() &&
           std::all_of(threads_.begin(), threads_.end(), [&](pid_t each) { return each == thread; });
  }

 private:
  std::vector<pid_t> threads_;
};

}  // namespace beeline::hpe::detail
