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
  int iterations = 0;  ///< in a timed run; 0: about a tenth of a second; with `until`: as many as needed
  double until = 0;    ///< largest change at which a timed run ends; 0: it has a fixed number of iterations
  int every = 0;       ///< iterations between two readings of the largest change
  bool verify = true;
  double energy_seconds = 0;  ///< for which each method's energy is metered; 0: no metering
};

/// Collective. Returns whether every method's result was right; every rank returns the same.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace jacobi
