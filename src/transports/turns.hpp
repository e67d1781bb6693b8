// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decides which thread does the network's work: one thread at a time, the first that comes. A thread that finds
/// another thread working leaves a note, and the working thread then looks for work once more.

#include <atomic>
#include <mutex>

namespace beeline {

class WorkTurns {
 public:
  /// Announces work, for the next `try_work` or the thread that is working.
  void announce() {
    announced_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  /// Calls `some()` unless another thread works, and again for each announcement made meanwhile.
  ///   leave_rest  called if announcements go on after many rounds, since this thread has waits of its own
  /// Returns whether `some` had anything to do.
  template <class Work, class LeaveRest>
  bool try_work(Work some, LeaveRest leave_rest) {
    bool any = false;
    for (int round = 0; round < most_rounds; ++round) {
      {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock) return any;
        announced_.store(false);
        any = some() || any;
      }
      // The lock is released before announcements are read: an announcing thread gets the lock, or is seen here.
      if (!is_announced()) return any;
    }
    leave_rest();
    return any;
  }

  /// Whether work was announced since the last `try_work`. For a thread that works, to end early.
  [[nodiscard]] const std::atomic<bool>& announced() const { return announced_; }

  /// Whether the calling thread may sleep: no thread works, `prepare()` allows it, and no work was announced meanwhile.
  template <class Prepare>
  [[nodiscard]] bool may_sleep(Prepare prepare) {
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock || !prepare()) return false;
    }
    return !is_announced();
  }

  /// Locks for work that waits for its turn.
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

 private:
  static constexpr int most_rounds = 64;

  [[nodiscard]] bool is_announced() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return announced_.load(std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::atomic<bool> announced_{false};  ///< asks the thread that holds the mutex to look for work once more
};

}  // namespace beeline
