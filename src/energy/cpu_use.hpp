// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// CPU time and sleep states, as the kernel counts them.

#include <string>

#include "beeline/energy/meter.hpp"

namespace beeline::energy {

/// The kernel's counters now.
///   proc, cpus  folders, for tests
[[nodiscard]] CpuUse cpu_use(const std::string& proc = "/proc", const std::string& cpus = "/sys/devices/system/cpu");

/// What was used between two looks.
[[nodiscard]] CpuUse difference(const CpuUse& after, const CpuUse& before);

}  // namespace beeline::energy
