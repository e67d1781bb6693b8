// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Times and verifies methods.

#include <cstdint>
#include <optional>
#include <vector>

#include "method.hpp"

namespace breadth_first {

struct Options {
  int scale = 0;
  std::vector<MethodInfo> methods;
  std::size_t roots = 64;
  std::optional<std::uint32_t> root;  ///< search from this vertex alone
  bool verify = true;                 ///< check the tree of the first root, and its levels by the serial reference
  bool validate = false;              ///< check the trees of all roots
  double energy_seconds = 0;
};

/// Collective. Prints a result for each method. Returns whether all trees were right. Throws invalid_argument for a
/// root without edges, or if the graph has fewer roots than asked for.
[[nodiscard]] bool measure(beeline::World& world, const Options& options);

}  // namespace breadth_first
