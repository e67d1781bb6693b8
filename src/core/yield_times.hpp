// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How long a thread's yields take, and whether it had better sleep.

#include <chrono>

namespace beeline::detail {

/// Times of one thread's yields. A program that computes on the same core takes it at each yield for its whole time
/// slice, although the yielding thread has hardly used its own. After a short sleep a thread gets its core back much
/// sooner (bench/records/NOTES.md, "Polls before a wait yields its core"). Threads that only wait return the core
/// within microseconds: between those, yields are faster.
class YieldTimes {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds long_yield{1};  ///< less than a time slice, more than another wait takes
  static constexpr std::chrono::milliseconds sleeps_for{100};
  static constexpr unsigned period = 8;  ///< yields of which one is timed: two clocks take a fifth of a yield
  /// A long yield counts as much as this number of short ones, between threads that wait on the same core. One may be
  /// the work of the system: it sleeps after two with less than half of this number of short ones in between.
  static constexpr unsigned weight = 32, least = weight + weight / 2;

  /// Whether the next yield is to be timed: soon after a long one each is.
  [[nodiscard]] bool is_due() { return points_ > 0 || ++count_ % period == 0; }
  void add(Clock::time_point start, Clock::time_point end) {
    if (end - start < long_yield) {
      if (points_ > 0) --points_;
      return;
    }
    points_ += weight;
    if (points_ < least) return;
    points_ = weight;  // after the sleeps one more long yield shows whether it still holds
    sleeps_until_ = end + sleeps_for;
    is_over_ = false;
  }

  /// Whether the thread is to sleep instead of yielding. `now()` is called only if it may be.
  template <class Now>
  [[nodiscard]] bool take_long(Now now) {
    if (is_over_) return false;
    is_over_ = now() >= sleeps_until_;
    return !is_over_;
  }

 private:
  unsigned count_ = 0;   ///< yields that might have been timed
  unsigned points_ = 0;  ///< `weight` for each long yield, less one for each short one, below `least`
  bool is_over_ = true;  ///< whether `sleeps_until_` has passed
  Clock::time_point sleeps_until_{};
};

}  // namespace beeline::detail
