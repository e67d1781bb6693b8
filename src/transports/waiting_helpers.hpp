// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How often waiting threads do the work of a network's engine, by which the engine's own thread decides how long it
/// rests.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace beeline {

/// Times are of one steady clock, in nanoseconds.
class WaitingHelpers {
 public:
  /// A waiting thread works. Any thread calls it, like `has_worked`.
  void count(std::uint64_t now_ns) {
    rounds_.fetch_add(1, std::memory_order_relaxed);
    worked_at_.store(now_ns, std::memory_order_relaxed);
  }
  /// Whether a waiting thread has worked within the last `period_ns`.
  [[nodiscard]] bool has_worked(std::uint64_t now_ns) const {
    return now_ns - worked_at_.load(std::memory_order_relaxed) < period_ns;
  }
  /// Time for which the engine's thread rests: an eighth of the time for which waiting threads have worked frequently,
  /// within limits; 0: they do not. On a virtual machine each rest takes some 20 us of a core. The engine's thread
  /// calls it.
  [[nodiscard]] std::uint64_t rest_ns(std::uint64_t now_ns) {
    const std::uint64_t rounds = rounds_.load(std::memory_order_relaxed);
    const std::uint64_t more = rounds - std::exchange(seen_, rounds);
    if (more == 0) return 0;
    const bool is_frequent = more * period_ns >= now_ns - std::exchange(seen_at_, now_ns);
    if (!is_frequent || since_ == 0) since_ = now_ns;
    return is_frequent ? std::clamp((now_ns - since_) / 8, least_rest_ns, most_rest_ns) : 0;
  }

  /// Waiting threads that work less often than this delay messages, for instance threads that sleep between polls.
  static constexpr std::uint64_t period_ns = 25'000;
  static constexpr std::uint64_t least_rest_ns = 200'000, most_rest_ns = 1'000'000;

 private:
  std::atomic<std::uint64_t> rounds_{0};     ///< of work by waiting threads
  std::atomic<std::uint64_t> worked_at_{0};  ///< time of the last round
  std::uint64_t seen_ = 0;                   ///< value of `rounds_` when the engine's thread looked last
  std::uint64_t seen_at_ = 0;                ///< time at which it last found that `rounds_` had grown
  std::uint64_t since_ = 0;                  ///< time since when the rounds have been frequent; 0: never yet
};

}  // namespace beeline
