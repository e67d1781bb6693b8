// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The barrier that a kernel launches: in a library of its own, because it alone needs relocatable device code.

#include <vector>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// The barrier by every algorithm of one block, between kernels that launch it and each other. Unavailable where a rank
/// has no GPU.
[[nodiscard]] std::vector<Case> device_launched_barriers();

}  // namespace beeline::bench
