// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Measures how long a failing wait takes compared with its deadline.

#include <chrono>
#include <cstdint>

namespace beeline_test {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// Seconds that a wait may last beyond its deadline: the larger of 10 % and 100 ms.
[[nodiscard]] inline double allowed_excess(double deadline_s) {
  return deadline_s * 0.1 > 0.1 ? deadline_s * 0.1 : 0.1;
}
/// Half a second more, for busy machines whose scheduler does not run a thread for that long.
inline constexpr double scheduling_slack_s = 0.5;

}  // namespace beeline_test
