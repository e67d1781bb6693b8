// SPDX-License-Identifier: Apache-2.0
#include "energy/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "beeline/energy/gpu_state.hpp"

namespace beeline::energy {

namespace {

/// nvmlFieldValue_t
struct FieldValue {
  unsigned field, scope;
  long long timestamp_us, latency_us;
  unsigned type;
  int status;
  Nvml::Number value;
};
static_assert(sizeof(FieldValue) == 40);

constexpr unsigned total_energy = 83;    // NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, millijoules
constexpr unsigned instant_power = 186;  // NVML_FI_DEV_POWER_INSTANT, milliwatts

}  // namespace

template <class Signature>
Signature* Nvml::function(const char* name) const {
  return library_ == nullptr ? nullptr : reinterpret_cast<Signature*>(dlsym(library_, name));
}

Nvml::Nvml(const std::string& library) : library_(dlopen(library.c_str(), RTLD_NOW)) {
  if (library_ == nullptr) {
    reason_ = fmt::format("NVML is missing: {}", dlerror());
    return;
  }
  auto* start = function<int()>("nvmlInit_v2");
  if (start == nullptr)
    reason_ = fmt::format("{} has no nvmlInit_v2", library);
  else if (const int status = start(); status != 0)
    reason_ = fmt::format("nvmlInit: {}", text(status));
  if (!reason_.empty()) return;
  total_energy_ = function<int(Device, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption");
  power_usage_ = function<int(Device, unsigned*)>("nvmlDeviceGetPowerUsage");
  field_values_ = function<int(Device, int, void*)>("nvmlDeviceGetFieldValues");
}

Nvml::~Nvml() {
  if (auto* stop = function<int()>("nvmlShutdown"); reason_.empty() && stop != nullptr) stop();
  if (library_ != nullptr) dlclose(library_);
}

std::string Nvml::text(int status) const {
  auto* describe = function<const char*(int)>("nvmlErrorString");
  return fmt::format("{} (NVML {})", describe == nullptr ? "failed" : describe(status), status);
}

std::vector<std::string> Nvml::uuids() const {
  auto* count_of = function<int(unsigned*)>("nvmlDeviceGetCount_v2");
  auto* at = function<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
  auto* uuid_of = function<int(Device, char*, unsigned)>("nvmlDeviceGetUUID");
  unsigned count = 0;
  std::vector<std::string> found;
  if (!reason_.empty() || count_of == nullptr || at == nullptr || uuid_of == nullptr || count_of(&count) != 0)
    return found;
  for (unsigned index = 0; index < count; ++index) {
    Device device = nullptr;
    std::array<char, 96> uuid{};
    if (at(index, &device) == 0 && uuid_of(device, uuid.data(), uuid.size()) == 0) found.emplace_back(uuid.data());
  }
  return found;
}

Nvml::Answer<Nvml::Device> Nvml::device(const std::string& uuid) const {
  if (!reason_.empty()) return {std::nullopt, reason_};
  auto* find = function<int(const char*, Device*)>("nvmlDeviceGetHandleByUUID");
  Device device = nullptr;
  if (find == nullptr) return {std::nullopt, "NVML has no nvmlDeviceGetHandleByUUID"};
  if (const int status = find(uuid.c_str(), &device); status != 0) return {std::nullopt, text(status)};
  return {device, {}};
}

std::optional<Nvml::Number> Nvml::field(Device device, unsigned number) const {
  FieldValue asked{};
  asked.field = number;
  if (field_values_ == nullptr || field_values_(device, 1, &asked) != 0 || asked.status != 0) return std::nullopt;
  return asked.value;
}

Nvml::Answer<double> Nvml::joules(Device device) const {
  // On an H100 the call of nvmlDeviceGetTotalEnergyConsumption takes 4.7 ms of CPU time, a field 6 us.
  if (const auto counted = field(device, total_energy); counted && counted->large != 0)
    return {counted->large / 1e3, {}};
  unsigned long long millijoules = 0;
  if (total_energy_ == nullptr) return {std::nullopt, "this NVML has no total-energy counter"};
  if (const int status = total_energy_(device, &millijoules); status != 0)
    return {std::nullopt, fmt::format("total-energy counter: {}", text(status))};
  return {static_cast<double>(millijoules) / 1e3, {}};
}

std::optional<double> Nvml::watts(Device device) const {
  if (const auto power = field(device, instant_power)) return power->number / 1e3;
  unsigned milliwatts = 0;
  if (power_usage_ == nullptr || power_usage_(device, &milliwatts) != 0) return std::nullopt;
  return milliwatts / 1e3;
}

std::string Nvml::name(Device device) const {
  std::array<char, 96> text{};
  auto* get = function<int(Device, char*, unsigned)>("nvmlDeviceGetName");
  return get != nullptr && get(device, text.data(), text.size()) == 0 ? text.data() : std::string();
}

std::string Nvml::driver() const {
  std::array<char, 80> text{};
  auto* get = function<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  return get != nullptr && get(text.data(), text.size()) == 0 ? text.data() : std::string();
}

std::optional<unsigned> Nvml::number(const char* called, Device device, unsigned kind) const {
  unsigned value = 0;
  auto* get = function<int(Device, unsigned, unsigned*)>(called);
  if (get == nullptr || get(device, kind, &value) != 0) return std::nullopt;
  return value;
}

std::optional<GpuState> gpu_state(const std::string& uuid) {
  constexpr unsigned sm_clock = 1, memory_clock = 2, sensor = 0;
  const Nvml nvml;
  const auto device = nvml.device(uuid).value;
  if (!device) return std::nullopt;
  return GpuState{.name = nvml.name(*device),
                  .driver = nvml.driver(),
                  .sm_clock_mhz = nvml.number("nvmlDeviceGetClockInfo", *device, sm_clock),
                  .sm_clock_max_mhz = nvml.number("nvmlDeviceGetMaxClockInfo", *device, sm_clock),
                  .memory_clock_mhz = nvml.number("nvmlDeviceGetClockInfo", *device, memory_clock),
                  .temperature_celsius = nvml.number("nvmlDeviceGetTemperature", *device, sensor)};
}

}  // namespace beeline::energy
