// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Locks whose use is measured.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "beeline/hpe/device.hpp"
#include "hpe/tick_clock.hpp"

namespace beeline::hpe::detail {

/// A mutex and its lock times. The times change under the lock; any thread reads them.
class MeasuredMutex {
 public:
  [[nodiscard]] LockTimes times() const {
    const auto ns = [](const std::atomic<std::uint64_t>& ticks) {
      return TickClock::ns_of(ticks.load(std::memory_order_relaxed));
    };
    return {calls_.load(std::memory_order_relaxed), ns(held_), ns(longest_), ns(waited_)};
  }

  void lock() {
    if (mutex_.try_lock()) {
      taken_ = TickClock::now();
      return;
    }
    const std::uint64_t asked = TickClock::now();
    mutex_.lock();
    taken_ = TickClock::now();
    add(waited_, TickClock::between(asked, taken_));
  }
  void unlock() {
    const std::uint64_t held = TickClock::between(taken_, TickClock::now());
    add(calls_, 1);
    add(held_, held);
    longest_.store(std::max(held, longest_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  /// Only the holder of the lock writes, so no atomic addition is needed.
  static void add(std::atomic<std::uint64_t>& sum, std::uint64_t value) {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::uint64_t taken_ = 0;
  std::atomic<std::uint64_t> calls_{0}, held_{0}, longest_{0}, waited_{0};  ///< times in ticks
};

}  // namespace beeline::hpe::detail
