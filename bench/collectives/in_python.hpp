// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What programs in Python measure (python/beeline/ranks/, torch_peer.py): their methods and options.

#include <vector>

#include "harness/program.hpp"

namespace beeline::bench {

/// All-reduces by torch's symmetric memory, beside `collectives`.
[[nodiscard]] std::vector<Case> torch_cases();

[[nodiscard]] Measuring accuracy_command();
[[nodiscard]] std::vector<Case> accuracy_cases();
[[nodiscard]] Measuring overlap_command();
[[nodiscard]] std::vector<Case> overlap_cases();

}  // namespace beeline::bench
