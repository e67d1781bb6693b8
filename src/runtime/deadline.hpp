// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A point in time by which a wait must end.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "beeline/core/error.hpp"
#include "beeline/core/wait_policy.hpp"

namespace beeline::detail {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// `nanoseconds` from now; a negative value means now.
  explicit Deadline(std::int64_t nanoseconds)
      : total_ns_(std::clamp(nanoseconds, std::int64_t{0}, longest_ns)),
        end_(Clock::now() + std::chrono::nanoseconds(total_ns_)) {}

  [[nodiscard]] Clock::time_point end() const { return end_; }
  [[nodiscard]] bool passed() const { return Clock::now() >= end_; }
  /// The time given to the constructor, for messages.
  [[nodiscard]] double total_seconds() const { return static_cast<double>(total_ns_) / 1e9; }
  [[nodiscard]] std::int64_t remaining_ns() const {
    return std::max<std::int64_t>(0, std::chrono::nanoseconds(end_ - Clock::now()).count());
  }
  /// The remaining time for poll(), rounded up, so that a wait never ends early and then spins.
  [[nodiscard]] int poll_milliseconds() const {
    return static_cast<int>(std::min<std::int64_t>((remaining_ns() + 999'999) / 1'000'000, 1'000'000'000));
  }

 private:
  static constexpr std::int64_t longest_ns = 1'000'000'000'000'000'000;  // 30 years: no overflow when added to a clock
  std::int64_t total_ns_;
  Clock::time_point end_;
};

/// Throws if a signal of the program ends waits (see WaitInterrupt). The caller holds no lock.
inline void throw_if_interrupted(int rank) {
  const auto now = std::chrono::nanoseconds(Deadline::Clock::now().time_since_epoch()).count();
  if (is_interrupted(static_cast<std::uint64_t>(now)))
    throw Error(Status::aborted, "a signal of the program ended the wait", rank);
}

/// Waits until `over()` or the deadline. Throws for `rank` if a signal of the program ends the wait. Returns `over()`.
template <class Over>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, const Deadline& deadline,
                int rank, Over over) {
  constexpr auto nap = std::chrono::milliseconds(50);
  while (!changed.wait_until(lock, std::min(deadline.end(), Deadline::Clock::now() + nap), over)) {
    if (deadline.passed()) return false;
    lock.unlock();
    throw_if_interrupted(rank);
    lock.lock();
  }
  return true;
}

}  // namespace beeline::detail
