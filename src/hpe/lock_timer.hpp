// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Locks whose use is measured.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "beeline/hpe/device.hpp"

namespace beeline::hpe::detail {

/// A mutex and its lock times. The times change under the lock; any thread reads them.
class MeasuredMutex {
 public:
  [[nodiscard]] LockTimes times() const {
    return {calls_.load(std::memory_order_relaxed), held_ns_.load(std::memory_order_relaxed),
            longest_ns_.load(std::memory_order_relaxed), waited_ns_.load(std::memory_order_relaxed)};
  }

  void lock() {
    if (mutex_.try_lock()) {
      taken_ = Clock::now();
      return;
    }
    const Clock::time_point asked = Clock::now();
    mutex_.lock();
    taken_ = Clock::now();
    add(waited_ns_, since(asked, taken_));
  }
  void unlock() {
    const std::uint64_t held = since(taken_, Clock::now());
    add(calls_, 1);
    add(held_ns_, held);
    longest_ns_.store(std::max(held, longest_ns_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static std::uint64_t since(Clock::time_point begin, Clock::time_point end) {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(end - begin).count());
  }
  /// Only the holder of the lock writes, so no atomic addition is needed.
  static void add(std::atomic<std::uint64_t>& sum, std::uint64_t value) {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  Clock::time_point taken_;
  std::atomic<std::uint64_t> calls_{0}, held_ns_{0}, longest_ns_{0}, waited_ns_{0};
};

}  // namespace beeline::hpe::detail
