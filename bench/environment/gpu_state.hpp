// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the driver says about the GPUs of a run.

#include <nlohmann/json.hpp>
#include <string>

#include "beeline/host/world.hpp"

namespace beeline::bench {

/// Versions of driver and runtime; null in a build without CUDA, and where there is no driver.
[[nodiscard]] nlohmann::ordered_json cuda_versions();

/// Clocks and temperature of a GPU, through NVML; null where NVML is missing.
[[nodiscard]] nlohmann::ordered_json gpu_state(const std::string& uuid);

/// For each pair of ranks on different GPUs that this process sees: peer access, atomics, performance rank.
/// Null where fewer than two GPUs take part.
[[nodiscard]] nlohmann::ordered_json gpu_topology(const World& world);

}  // namespace beeline::bench
