// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One run of the program: times methods, verifies them, and prints JSON lines from rank 0.

#include <vector>

#include "beeline/host/world.hpp"
#include "method.hpp"
#include "problem.hpp"

namespace himeno {

struct Options {
  Size size{};
  std::vector<MethodInfo> methods;
  int iterations = 0;  ///< in a timed run; 0: as many as take about a third of a second, at least 10
  bool verify = true;
  double energy_seconds = 0;  ///< for which each method's energy is metered; 0: no metering
};

/// Collective. On rank 0 returns whether every method's result was right; on the other ranks true.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace himeno
