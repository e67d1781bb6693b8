// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Locks whose use is measured.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "beeline/hpe/device.hpp"
#include "hpe/biased_lock.hpp"
#include "hpe/tick_clock.hpp"

namespace beeline::hpe::detail {

/// A mutex and its lock times. The times change under the lock; any thread reads them. To unlock takes a plain store,
/// since an atomic exchange would wait for the stores of the call that was made under the lock (biased_lock.hpp). So no
/// thread is woken: those that find the mutex locked poll.
class MeasuredMutex {
 public:
  [[nodiscard]] LockTimes times() const {
    const auto ns = [](const std::atomic<std::uint64_t>& ticks) {
      return TickClock::ns_of(ticks.load(std::memory_order_relaxed));
    };
    return {calls_.load(std::memory_order_relaxed), ns(held_), ns(longest_), ns(waited_)};
  }

  void lock() {
    if (lock_.try_lock()) {
      taken_ = TickClock::now();
      return;
    }
    const std::uint64_t asked = TickClock::now();
    for (unsigned poll = 0; !lock_.try_lock(); ++poll) pause(poll);
    taken_ = TickClock::now();
    add(waited_, TickClock::between(asked, taken_));
  }
  void unlock() {
    const std::uint64_t held = TickClock::between(taken_, TickClock::now());
    add(calls_, 1);
    add(held_, held);
    longest_.store(std::max(held, longest_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    lock_.unlock();
  }

 private:
  /// Calls take microseconds; longer ones, such as those that wait for room in a stream, let others use the core.
  static void pause(unsigned poll) {
    constexpr unsigned polls_without_sleep = 64;
    if (poll < polls_without_sleep)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  /// Only the holder of the lock writes, so no atomic addition is needed.
  static void add(std::atomic<std::uint64_t>& sum, std::uint64_t value) {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  BiasedLock lock_;
  std::uint64_t taken_ = 0;
  std::atomic<std::uint64_t> calls_{0}, held_{0}, longest_{0}, waited_{0};  ///< times in ticks
};

}  // namespace beeline::hpe::detail
