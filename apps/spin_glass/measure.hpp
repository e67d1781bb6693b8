// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One run of the program: times methods, verifies them, and prints JSON lines from rank 0.

#include <vector>

#include "beeline/host/world.hpp"
#include "method.hpp"

namespace spin_glass {

struct Options {
  std::vector<Size> sizes;
  Model model;
  std::vector<MethodInfo> methods;
  int sweeps = 0;  ///< of a timed run; 0: as many as take about a tenth of a second
  bool verify = true;
  double energy_seconds = 0;  ///< for which each method's energy is metered; 0: no metering
};

/// Largest change of the energy of a site, and largest error of a spin's squared length, after `sweeps`
/// over-relaxations: rounding of float32 in a random walk.
[[nodiscard]] double tolerance(int sweeps);

/// Collective. Returns whether every method's result was right; every rank returns the same.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace spin_glass
