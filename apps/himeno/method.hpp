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

/// One way of running iterations with their communication. Constructors and destructors are collective.
class Method : public apps::MethodOn<Domain> {
 public:
  using MethodOn::MethodOn;

  /// Collective. Runs `iterations` iterations from iteration 0 (`Domain::reset`) and returns when this rank's are over.
  /// Afterwards `Domain::gosa` is the last iteration's. Without `communicate` only the computation runs: halos stay as
  /// they are and nothing is summed over ranks.
  /// Throws what a wait met: deadline, aborted, peer_died.
  void run(int iterations, bool communicate) {
    begin_ = Clock::now();
    launch_seconds_.reset();
    iterate(iterations, communicate);
  }
  /// For how long this rank's CPU was busy with launching the last run, queues that were full included; none where it
  /// waited for the device in between.
  [[nodiscard]] std::optional<double> launch_seconds() const { return launch_seconds_; }

 protected:
  [[nodiscard]] Domain& domain() const { return data(); }
  /// See `run`.
  virtual void iterate(int iterations, bool communicate) = 0;
  /// For `iterate`, when all is launched: waits for the end.
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

/// The methods of the program `himeno` for any number of ranks, the host's first: CMakeLists.txt lists them. Each is a
/// file with a function of its name, `MethodInfo name()`. Method 7 has a program of its own: device_launched.hpp.
[[nodiscard]] const std::vector<MethodInfo>& methods();
/// Its methods of one rank alone, which show what launching costs.
[[nodiscard]] std::vector<MethodInfo> launch_methods();

}  // namespace himeno
