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
  std::vector<std::size_t> counts;  ///< values of a rank, one measurement after another
  std::vector<MethodInfo> methods;
  int reductions = 0;         ///< of a timed run; 0: as many as take about a tenth of a second
  double energy_seconds = 0;  ///< of load that is metered for each method; 0: none
};

/// Collective. Returns whether every method's result was right: the same on every rank.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace global_reduction
