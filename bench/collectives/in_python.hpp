// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Methods and options of the measurements that programs in Python make (python/beeline/ranks/, torch_peer.py).

#include <vector>

#include "harness/program.hpp"

namespace beeline::bench {

/// All-reduces by torch's symmetric memory, for comparison in `collectives`.
[[nodiscard]] std::vector<Case> torch_cases();

[[nodiscard]] Measuring accuracy_command();
[[nodiscard]] std::vector<Case> accuracy_cases();
[[nodiscard]] Measuring overlap_command();
[[nodiscard]] std::vector<Case> overlap_cases();

}  // namespace beeline::bench
