// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One run of the program: times methods, verifies them, and prints JSON lines.

#include <cstddef>
#include <string>
#include <vector>

#include "method.hpp"

namespace fft {

struct Options {
  std::vector<std::size_t> counts;  ///< elements of the vectors
  std::vector<MethodInfo> methods;
  int transforms = 0;  ///< in a timed run; 0: as many as take about a quarter of a second
  bool verify = true;
  std::string file;  ///< gets the last result, complex64 in the order of frequencies; empty: none
};

/// Returns whether every method's result was right.
[[nodiscard]] bool measure(const apps::Devices& devices, const Options& options);

}  // namespace fft
