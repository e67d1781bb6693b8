// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// CPU time and sleep states from the kernel's counters.

#include <string>

#include "beeline/energy/meter.hpp"

namespace beeline::energy {

/// The current values of the kernel's counters.
///   proc, cpus  folders, for tests
[[nodiscard]] CpuUse cpu_use(const std::string& proc = "/proc", const std::string& cpus = "/sys/devices/system/cpu");

/// The use between two calls of `cpu_use`.
[[nodiscard]] CpuUse difference(const CpuUse& after, const CpuUse& before);

}  // namespace beeline::energy
