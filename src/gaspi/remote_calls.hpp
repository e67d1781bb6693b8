// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations for whose answer from another node a thread waits (reads, atomics). They and the recovery from a loss of
/// ranks exclude each other: an operation that is posted to a rank without which the world goes on would be this rank's
/// mistake, and abort the world.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace beeline::gaspi {

class RemoteCalls {
 public:
  /// Keeps a recovery waiting while it lives.
  class Call {
   public:
    explicit Call(RemoteCalls& of) : of_(of) { of_.count_.fetch_add(1); }
    ~Call() { of_.count_.fetch_sub(1); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    /// Whether the call may go on: no recovery has begun.
    [[nodiscard]] bool may_go_on() const { return !of_.is_closed_.load(); }

   private:
    RemoteCalls& of_;
  };

  /// Begins a recovery. From now on `may_go_on` is false. Waits, at most for `limit`, until the calls in progress have
  /// ended: the abort of the world ends them.
  void close(std::chrono::nanoseconds limit) {
    is_closed_.store(true);  // either this thread sees a call's count, or the call sees this
    const auto end = std::chrono::steady_clock::now() + limit;
    while (count_.load() != 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  /// Ends a recovery.
  void open() { is_closed_.store(false); }

 private:
  std::atomic<std::uint32_t> count_{0};
  std::atomic<bool> is_closed_{false};
};

}  // namespace beeline::gaspi
