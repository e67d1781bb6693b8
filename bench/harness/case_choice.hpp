// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The choice of cases on the command line.

#include <string>
#include <vector>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// The values of the cases' member `name` (&Case::operation, &Case::method), without duplicates.
[[nodiscard]] std::vector<std::string> names_of(const std::vector<Case>& cases, std::string Case::*name);

/// The cases that the options name; throws invalid_argument if there is none.
[[nodiscard]] std::vector<Case> chosen(std::vector<Case> cases, const Options& options);

}  // namespace beeline::bench
