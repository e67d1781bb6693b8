// SPDX-License-Identifier: Apache-2.0
#include "environment/gpu_state.hpp"

#include <dlfcn.h>

#include <fstream>
#include <optional>

#if defined(BEELINE_HAS_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;

/// NVML, opened at run time. Signatures and numbers are those of its public header.
class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    auto* start = function<int()>("nvmlInit_v2");
    ready_ = start != nullptr && start() == 0;
  }
  ~Nvml() {
    if (auto* stop = function<int()>("nvmlShutdown"); ready_ && stop != nullptr) stop();
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] void* device(const std::string& uuid) const {
    void* handle = nullptr;
    auto* find = function<int(const char*, void**)>("nvmlDeviceGetHandleByUUID");
    return ready_ && find != nullptr && find(uuid.c_str(), &handle) == 0 ? handle : nullptr;
  }
  /// A function of NVML that gives one number about a device.
  [[nodiscard]] Json number(const char* name, void* device, unsigned kind) const {
    unsigned value = 0;
    auto* get = function<int(void*, unsigned, unsigned*)>(name);
    return get != nullptr && get(device, kind, &value) == 0 ? Json(value) : Json(nullptr);
  }

 private:
  template <class Signature>
  [[nodiscard]] Signature* function(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Signature*>(dlsym(library_, name));
  }
  void* library_;
  bool ready_ = false;
};

/// The driver's own version, the first word of its line that starts with a digit; CUDA's "driver version" is the newest
/// CUDA that it supports.
Json kernel_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.front() >= '0' && word.front() <= '9') return word;
  return nullptr;
}

}  // namespace

Json gpu_state(const std::string& uuid) {
  constexpr unsigned sm_clock = 1, memory_clock = 2, gpu_sensor = 0;
  const Nvml nvml;
  void* device = nvml.device(uuid);
  if (device == nullptr) return nullptr;
  return {{"sm_clock_mhz", nvml.number("nvmlDeviceGetClockInfo", device, sm_clock)},
          {"sm_clock_max_mhz", nvml.number("nvmlDeviceGetMaxClockInfo", device, sm_clock)},
          {"memory_clock_mhz", nvml.number("nvmlDeviceGetClockInfo", device, memory_clock)},
          {"temperature_celsius", nvml.number("nvmlDeviceGetTemperature", device, gpu_sensor)}};
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

/// This process's ordinal of a GPU, also of one that another process uses.
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

Json gpu_topology(const World& world) {
  const std::vector<Device> visible = visible_gpus();
  Json pairs = Json::array();
  for (int from = 0; from < world.size(); ++from)
    for (int to = 0; to < world.size(); ++to) {
      const auto a = ordinal_of(visible, world.device(from).uuid), b = ordinal_of(visible, world.device(to).uuid);
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
Json gpu_topology(const World&) { return nullptr; }

#endif

}  // namespace beeline::bench
