// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs cases: calibrates, samples until the samples agree, verifies, prints.

#include <vector>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// Collective. Runs each case for each size. After the last case, throws internal if any data was wrong.
void run_cases(Bench& bench, const std::vector<Case>& cases);

}  // namespace beeline::bench
