// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Times and verifies methods.

#include <vector>

#include "method.hpp"

namespace tree_search {

struct Options {
  Tree tree;
  std::vector<MethodInfo> methods;
  int searches = 0;  ///< of each timed run; 0: as many as make a run long enough
  bool verify = true;
  double energy_seconds = 0;
};

/// Collective. Prints a result for each method. Returns whether all counts were right.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace tree_search
