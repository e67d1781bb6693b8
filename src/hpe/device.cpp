// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "beeline/core/error.hpp"
#include "hpe/runtime.hpp"

namespace beeline::hpe {

using detail::Runtime;

LockTimes& LockTimes::operator+=(const LockTimes& other) {
  calls += other.calls;
  held_ns += other.held_ns;
  longest_ns = std::max(longest_ns, other.longest_ns);
  waited_ns += other.waited_ns;
  return *this;
}

Device detail::device_at(DeviceKind kind, int index) { return {kind, index}; }

Device Device::gpu(int index) {
  const Runtime& runtime = Runtime::get();
  const auto count = static_cast<int>(runtime.gpus().size());
  if (index < 0 || index >= count)
    throw Error(Status::invalid_argument, fmt::format("GPU {} is not here: this process sees {}{}", index, count,
                                                      count == 0 ? " (" + runtime.why_no_gpus() + ")" : ""));
  return {DeviceKind::gpu, index};
}

Device Device::host(int index) {
  if (index < 0 || index >= max_host_devices)
    throw Error(Status::invalid_argument, fmt::format("host device {}: expected 0 to {}", index, max_host_devices - 1));
  return {DeviceKind::host, index};
}

std::vector<Device> Device::gpus() {
  std::vector<Device> all;
  for (const beeline::Device& gpu : Runtime::get().gpus()) all.push_back({DeviceKind::gpu, gpu.index});
  return all;
}

std::vector<Device> Device::all(int host_devices) {
  if (host_devices < 0 || host_devices > max_host_devices)
    throw Error(Status::invalid_argument,
                fmt::format("{} host devices: expected 0 to {}", host_devices, max_host_devices));
  std::vector<Device> found = gpus();
  if (!found.empty()) return found;
  for (int index = 0; index < host_devices; ++index) found.push_back(host(index));
  return found;
}

std::string Device::name() const {
  if (!is_gpu()) return fmt::format("host device {}", index_);
  return fmt::format("GPU {} ({})", index_, Runtime::get().state_of(*this).info().name);
}

bool Device::reaches(Device other) const { return Runtime::get().reaches(*this, other); }
LockTimes Device::lock_times() const { return Runtime::get().state_of(*this).lock_times(); }
void Device::require_working() const { Runtime::get().state_of(*this).require_working(); }

void simulate_loss(Device device) { Runtime::get().state_of(device).fail("it has disappeared (simulated by a test)"); }

}  // namespace beeline::hpe
