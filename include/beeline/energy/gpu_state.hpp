// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the driver's management library says of a GPU.

#include <optional>
#include <string>

namespace beeline::energy {

/// At this moment; what it does not say is missing.
struct GpuState {
  std::string name, driver;
  std::optional<unsigned> sm_clock_mhz, sm_clock_max_mhz, memory_clock_mhz, temperature_celsius;
};

/// None where NVML, or the GPU of this UUID, is missing.
[[nodiscard]] std::optional<GpuState> gpu_state(const std::string& uuid);

}  // namespace beeline::energy
