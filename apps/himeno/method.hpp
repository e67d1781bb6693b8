// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list.

#include <chrono>
#include <optional>
#include <vector>

#include "common/launch_window.hpp"
#include "common/method.hpp"
#include "domain.hpp"

namespace himeno {

using apps::LaunchWindow;

/// One method to run iterations with their communication. Constructors and destructors are collective.
class Method : public apps::MethodOn<Domain> {
 public:
  using MethodOn::MethodOn;

  /// Collective. Runs `iterations` iterations from iteration 0 (`Domain::reset`) and returns when this rank's
  /// iterations are over. Afterwards `Domain::gosa` is that of the last iteration. Without `communicate` only the
  /// computation runs: halos stay as they are and nothing is summed over ranks.
  /// Throws the error of a failed wait: deadline, aborted, peer_died.
  void run(int iterations, bool communicate) {
    begin_ = Clock::now();
    launch_seconds_.reset();
    iterate(iterations, communicate);
  }
  /// Seconds for which this rank's CPU was busy launching the last run, including waits for full queues; none if the
  /// CPU waited for the device in between.
  [[nodiscard]] std::optional<double> launch_seconds() const { return launch_seconds_; }

 protected:
  [[nodiscard]] Domain& domain() const { return data(); }
  /// See `run`.
  virtual void iterate(int iterations, bool communicate) = 0;
  /// Called by `iterate` when everything is launched: waits for the end of the run.
  void finish() {
    launch_seconds_ = std::chrono::duration<double>(Clock::now() - begin_).count();
    world().synchronize();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
  std::optional<double> launch_seconds_;
};

using MethodInfo = apps::MethodInfo<Method, Domain>;
using apps::find_method;

/// The methods of the program `himeno` for any number of ranks, those of the host first: CMakeLists.txt lists them.
/// Each is a file with a function named after it, `MethodInfo name()`. Method 7 has its own program:
/// device_launched.hpp.
[[nodiscard]] const std::vector<MethodInfo>& methods();
/// The program's methods for one rank alone, which measure the cost of launches.
[[nodiscard]] std::vector<MethodInfo> launch_methods();

}  // namespace himeno
