// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One run of the program: times methods, verifies them, and prints JSON lines from rank 0.

#include <vector>

#include "beeline/host/world.hpp"
#include "method.hpp"

namespace random_access {

struct Options {
  std::vector<Layout> tables;  ///< measured one after another
  std::vector<MethodInfo> methods;
  int divisor = 0;  ///< a run makes 1 of so many of the updates; 0: the fewest that take about a second
  bool verify = true;
  double energy_seconds = 0;  ///< for which each method's energy is metered; 0: no metering
};

/// Collective. Returns whether every method's table was right; every rank returns the same.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace random_access
