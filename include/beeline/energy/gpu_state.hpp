// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The state of a GPU, as reported by the driver's management library, NVML.

#include <optional>
#include <string>

namespace beeline::energy {

/// The GPU's present state; values that NVML does not report are missing.
struct GpuState {
  std::string name, driver;
  std::optional<unsigned> sm_clock_mhz, sm_clock_max_mhz, memory_clock_mhz, temperature_celsius;
};

/// Reads the state of the GPU with this UUID; no value if NVML or the GPU is missing.
[[nodiscard]] std::optional<GpuState> gpu_state(const std::string& uuid);

}  // namespace beeline::energy
