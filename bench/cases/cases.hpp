// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The cases of the primitives (transfers, signals, atomics, barriers). Each method has a file, which lists its cases.

#include <vector>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// Registers cases of a command when the program starts, in the order of the files in bench/CMakeLists.txt. Each file
/// has its own namespace, because unity builds compile several files together.
struct ListedCases {
  ListedCases(Command command, std::vector<Case> cases);
};

/// All primitive cases of the command, without those of bench/collectives.
[[nodiscard]] std::vector<Case> primitive_cases(Command command);

}  // namespace beeline::bench
