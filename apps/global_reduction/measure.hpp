// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One run of the program: times methods, verifies them, and prints JSON lines from rank 0.

#include <cstddef>
#include <vector>

#include "beeline/host/world.hpp"
#include "method.hpp"

namespace global_reduction {

struct Options {
  std::vector<std::size_t> counts;  ///< numbers of values of a rank, measured one after another
  std::vector<MethodInfo> methods;
  int reductions = 0;         ///< in a timed run; 0: as many as take about a tenth of a second
  double energy_seconds = 0;  ///< for which each method's energy is metered; 0: no metering
};

/// Collective. Returns whether every method's result was right; every rank returns the same.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace global_reduction
