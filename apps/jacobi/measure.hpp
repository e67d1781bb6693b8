// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One run of the program: times methods, verifies them, and prints JSON lines from rank 0.

#include <vector>

#include "beeline/host/world.hpp"
#include "method.hpp"

namespace jacobi {

struct Options {
  std::vector<Size> sizes;
  std::vector<MethodInfo> methods;
  int iterations = 0;  ///< of a timed run; 0: as many as take about a tenth of a second, with `until` as many as needed
  double until = 0;    ///< largest change at which a timed run ends; 0: it has a fixed number of iterations
  int every = 0;       ///< iterations between two looks at the largest change
  bool verify = true;
  double energy_seconds = 0;  ///< of load that is metered for each method; 0: none
};

/// Collective. Returns whether every method's result was right: the same on every rank.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace jacobi
