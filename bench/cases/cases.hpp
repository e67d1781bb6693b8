// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The cases of the primitives (transfers, signals, atomics, barriers): a file for each way of doing them, which lists
/// its own.

#include <vector>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// Lists cases of a command, when the program starts. Files come in the order of bench/CMakeLists.txt, and have a
/// namespace each: builds in batches compile several of them at once.
struct ListedCases {
  ListedCases(Command command, std::vector<Case> cases);
};

/// All of the command; none of those of bench/collectives.
[[nodiscard]] std::vector<Case> primitive_cases(Command command);

}  // namespace beeline::bench
