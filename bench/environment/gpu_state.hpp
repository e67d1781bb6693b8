// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The state of a run's GPUs, as the driver reports it.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "beeline/runtime/device.hpp"

namespace beeline::bench {

/// Versions of driver and runtime; null in a build without CUDA, and if there is no driver.
[[nodiscard]] nlohmann::ordered_json cuda_versions();

/// Clocks and temperature of a GPU, from NVML; null if NVML is missing.
[[nodiscard]] nlohmann::ordered_json gpu_state(const std::string& uuid);

/// Peer access, atomics and performance rank for each pair of different GPUs that this process sees; pairs are named by
/// their places in `devices`. Null if fewer than two GPUs take part.
[[nodiscard]] nlohmann::ordered_json gpu_topology(const std::vector<Device>& devices);

}  // namespace beeline::bench
