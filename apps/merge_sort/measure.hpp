// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One run of the program: times methods, verifies them, and prints JSON lines.

#include <vector>

#include "method.hpp"

namespace merge_sort {

struct Options {
  std::vector<std::size_t> keys;
  unsigned bits = 64;
  std::vector<MethodInfo> methods;
  int sorts = 0;  ///< timed runs; 0: five
  bool verify = true;
};

/// Returns whether every method's result was right.
[[nodiscard]] bool measure(const apps::Devices& devices, const Options& options);

}  // namespace merge_sort
