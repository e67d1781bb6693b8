// SPDX-License-Identifier: Apache-2.0
#include "environment/gpu_state.hpp"

#include <fstream>
#include <optional>

#include "beeline/energy/gpu_state.hpp"

#if defined(BEELINE_HAS_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<unsigned>& value) { return value ? Json(*value) : Json(nullptr); }

/// The driver's own version: the first word of the version line that starts with a digit. CUDA's "driver version" is
/// the newest CUDA that the driver supports.
Json kernel_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.front() >= '0' && word.front() <= '9') return word;
  return nullptr;
}

}  // namespace

Json gpu_state(const std::string& uuid) {
  const auto state = energy::gpu_state(uuid);
  if (!state) return nullptr;
  return {{"sm_clock_mhz", or_null(state->sm_clock_mhz)},
          {"sm_clock_max_mhz", or_null(state->sm_clock_max_mhz)},
          {"memory_clock_mhz", or_null(state->memory_clock_mhz)},
          {"temperature_celsius", or_null(state->temperature_celsius)}};
}

#if defined(BEELINE_HAS_CUDA)

namespace {

Json version_from(cudaError_t (*get)(int*)) {
  int version = 0;
  if (get(&version) != cudaSuccess || version == 0) return nullptr;
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Json attribute(cudaDeviceP2PAttr which, int from, int to) {
  int value = 0;
  return cudaDeviceGetP2PAttribute(&value, which, from, to) == cudaSuccess ? Json(value) : Json(nullptr);
}

/// This process's ordinal of a GPU, even if another process uses the GPU.
std::optional<int> ordinal_of(const std::vector<Device>& visible, const std::string& uuid) {
  for (const Device& device : visible)
    if (device.uuid == uuid) return device.index;
  return std::nullopt;
}

}  // namespace

Json cuda_versions() {
  return {{"driver", kernel_driver()},
          {"driver_supports", version_from(cudaDriverGetVersion)},
          {"runtime", version_from(cudaRuntimeGetVersion)}};
}

Json gpu_topology(const std::vector<Device>& devices) {
  const std::vector<Device> visible = visible_gpus();
  Json pairs = Json::array();
  for (std::size_t from = 0; from < devices.size(); ++from)
    for (std::size_t to = 0; to < devices.size(); ++to) {
      const auto a = ordinal_of(visible, devices[from].uuid), b = ordinal_of(visible, devices[to].uuid);
      if (!a || !b || *a == *b) continue;
      pairs.push_back({{"from", from},
                       {"to", to},
                       {"peer_access", attribute(cudaDevP2PAttrAccessSupported, *a, *b)},
                       {"native_atomics", attribute(cudaDevP2PAttrNativeAtomicSupported, *a, *b)},
                       {"performance_rank", attribute(cudaDevP2PAttrPerformanceRank, *a, *b)}});
    }
  return pairs.empty() ? Json(nullptr) : pairs;
}

#else

Json cuda_versions() { return {{"driver", kernel_driver()}, {"driver_supports", nullptr}, {"runtime", nullptr}}; }
Json gpu_topology(const std::vector<Device>&) { return nullptr; }

#endif

}  // namespace beeline::bench
