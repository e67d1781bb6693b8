// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One run of the program: times schemes, verifies them, and prints JSON lines from rank 0.

#include <cstddef>
#include <vector>

#include "beeline/host/world.hpp"
#include "scheme.hpp"

namespace ring_reduction {

struct Options {
  std::vector<std::size_t> counts;  ///< elements of a rank's vector
  std::vector<Shape> shapes;        ///< each is measured with each count
  std::vector<SchemeInfo> schemes;
  int reductions = 0;  ///< in a timed run; 0: as many as take about a quarter of a second
  bool verify = true;
  double energy_seconds = 0;  ///< for which each method's energy is metered; 0: no metering
};

/// Collective. Returns whether every scheme's result was right; every rank returns the same.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace ring_reduction
