// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Waits that signal handlers may make: they consist of system calls and atomic operations only.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>

#include "hpe/exact_sleeps.hpp"

namespace beeline::hpe::detail {

/// Nanoseconds of the monotonic clock.
[[nodiscard]] inline std::int64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Sleeps for `nanoseconds`, or until a signal.
inline void nap(std::int64_t nanoseconds) noexcept {
  const ExactSleeps exact;
  const timespec time{static_cast<time_t>(nanoseconds / 1'000'000'000), nanoseconds % 1'000'000'000};
  ::nanosleep(&time, nullptr);
}

/// Sleeps while `word` is `value`, at most until `until_ns`. Returns false once that time has passed.
[[nodiscard]] inline bool futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                                     std::int64_t until_ns) noexcept {
  static_assert(sizeof word == sizeof(std::uint32_t));
  const timespec until{static_cast<time_t>(until_ns / 1'000'000'000), until_ns % 1'000'000'000};
  const long result = ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value, &until, nullptr,
                                FUTEX_BITSET_MATCH_ANY);
  return result == 0 || errno != ETIMEDOUT;
}

inline void futex_wake(std::atomic<std::uint32_t>& word, int threads = INT_MAX) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, threads, nullptr, nullptr, 0);
}

/// A lock whose waits have a deadline.
class FutexLock {
 public:
  /// Returns false, without the lock, if another thread holds it until `until_ns`.
  [[nodiscard]] bool lock(std::int64_t until_ns) noexcept {
    std::uint32_t expected = is_free;
    if (word_.compare_exchange_strong(expected, is_held, std::memory_order_acquire)) return true;
    while (word_.exchange(has_waiters, std::memory_order_acquire) != is_free)
      if (!futex_wait(word_, has_waiters, until_ns)) return false;
    return true;
  }
  /// In a forked process, whose only thread does not hold the lock.
  void reset() noexcept { word_.store(is_free, std::memory_order_relaxed); }
  void unlock() noexcept {
    if (word_.exchange(is_free, std::memory_order_release) == has_waiters) futex_wake(word_, 1);
  }

 private:
  static constexpr std::uint32_t is_free = 0, is_held = 1, has_waiters = 2;
  std::atomic<std::uint32_t> word_{is_free};
};

}  // namespace beeline::hpe::detail
