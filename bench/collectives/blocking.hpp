// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The times of a program that calls from the host and waits for each call: messages, all-reduce, barriers, launches.

#include <vector>

#include "harness/program.hpp"

namespace beeline::bench {

[[nodiscard]] Measuring calls_command();
[[nodiscard]] std::vector<Case> blocking_cases();

}  // namespace beeline::bench
