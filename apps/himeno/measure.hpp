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
  int iterations = 0;  ///< of a timed run; 0: as many as take about a third of a second, at least 10
  bool verify = true;
  double energy_seconds = 0;  ///< of load that is metered for each method; 0: none
};

/// Collective. Returns whether every method's result was right, on rank 0; true on the others.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace himeno
