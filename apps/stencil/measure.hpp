// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One run of the program: times methods, verifies them, and prints JSON lines.

#include <vector>

#include "method.hpp"

namespace stencil {

struct Options {
  std::vector<Size> sizes;
  std::vector<MethodInfo> methods;
  int steps = 0;  ///< in a timed run; 0: about a tenth of a second
  bool verify = true;
};

/// Returns whether every method's result was right.
[[nodiscard]] bool measure(const apps::Devices& devices, const Options& options);

}  // namespace stencil
