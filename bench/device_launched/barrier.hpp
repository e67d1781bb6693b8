// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The barrier that a kernel launches. It has its own library, because it alone needs relocatable device code.

#include <vector>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// The barrier by every single-block algorithm, between kernels that launch the barrier and each other. Unavailable if
/// a rank has no GPU.
[[nodiscard]] std::vector<Case> device_launched_barriers();

}  // namespace beeline::bench
