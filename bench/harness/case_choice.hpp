// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which cases the command line names.

#include <string>
#include <vector>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// What the cases have as `name` (&Case::operation, &Case::method), each once.
[[nodiscard]] std::vector<std::string> names_of(const std::vector<Case>& cases, std::string Case::*name);

/// The cases that the options name; throws invalid_argument where there is none.
[[nodiscard]] std::vector<Case> chosen(std::vector<Case> cases, const Options& options);

}  // namespace beeline::bench
