// SPDX-License-Identifier: Apache-2.0
// Stands in for libnvidia-ml.so.1: GPUs that draw a constant power, with an energy counter that advances every 100 ms.
// FAKE_NVML_WATTS: of each GPU. FAKE_NVML_GPUS: number of GPUs. While the file FAKE_NVML_LOST exists, the last is lost.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int success = 0, not_supported = 3, not_found = 6, gpu_is_lost = 15;

double setting(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atof(text);
}

unsigned gpus() { return static_cast<unsigned>(setting("FAKE_NVML_GPUS", 2)); }

/// The state of a GPU; its handle is 1 + its index.
int state_of(void* device) {
  const char* lost = std::getenv("FAKE_NVML_LOST");
  const bool is_last = reinterpret_cast<std::uintptr_t>(device) == gpus();
  return is_last && lost != nullptr && access(lost, F_OK) == 0 ? gpu_is_lost : success;
}

void uuid_of(void* device, char* text, unsigned length) {
  std::snprintf(text, length, "GPU-fake-%u", static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) - 1));
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return success; }
int nvmlShutdown() { return success; }
const char* nvmlErrorString(int status) { return status == gpu_is_lost ? "GPU is lost" : "Not Found"; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpus();
  return success;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(std::uintptr_t{index} + 1);
  return success;
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  uuid_of(device, text, length);
  return success;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (unsigned index = 0; index < gpus(); ++index) {
    char text[96];
    nvmlDeviceGetHandleByIndex_v2(index, device);
    uuid_of(*device, text, sizeof text);
    if (std::strcmp(text, uuid) == 0) return success;
  }
  return not_found;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto ticks = std::chrono::duration_cast<std::chrono::milliseconds>(now).count() / 100;
  *millijoules = static_cast<unsigned long long>(static_cast<double>(ticks) * 100 * setting("FAKE_NVML_WATTS", 300));
  return state_of(device);
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = static_cast<unsigned>(1000 * setting("FAKE_NVML_WATTS", 300));
  return state_of(device);
}

/// If FAKE_NVML_FIELDS is set: total energy (83) and instant power (186).
int nvmlDeviceGetFieldValues(void* device, int count, void* values) {
  struct Value {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type;
    int status;
    unsigned long long value;
  };
  if (std::getenv("FAKE_NVML_FIELDS") == nullptr) return not_supported;
  for (Value* each = static_cast<Value*>(values); count > 0; ++each, --count) {
    unsigned milliwatts = 0;
    each->status = each->field == 83    ? nvmlDeviceGetTotalEnergyConsumption(device, &each->value)
                   : each->field == 186 ? nvmlDeviceGetPowerUsage(device, &milliwatts)
                                        : not_supported;
    if (each->field == 186) each->value = milliwatts + 1000;  // differs from the average
  }
  return success;
}

int nvmlDeviceGetTemperature(void* device, unsigned /*sensor*/, unsigned* celsius) {
  *celsius = 40;
  return state_of(device);
}

}  // extern "C"
