// SPDX-License-Identifier: Apache-2.0
#include "common/devices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"

namespace apps {

namespace {

using beeline::require;
using beeline::Status;
namespace hpe = beeline::hpe;

Devices host_devices(int count) {
  require(count <= hpe::Device::max_host_devices, Status::no_resource,
          fmt::format("{} devices: a process has {} host devices at most", count, hpe::Device::max_host_devices));
  Devices devices;
  for (int index = 0; index < count; ++index) devices.push_back(hpe::Device::host(index));
  return devices;
}

/// The GPUs that the configuration names, in its order.
Devices named_gpus(const beeline::Config& config, const std::vector<beeline::Device>& visible) {
  beeline::DeviceInventory inventory;
  for (const beeline::Device& gpu : visible) inventory.gpus.push_back(gpu.uuid);
  std::vector<beeline::DeviceInventory> inventories;
  for (const std::string& choice : beeline::devices_of_ranks(config.device, config.size)) {
    inventory.choice = choice;
    inventories.push_back(inventory);
  }
  Devices devices;
  for (int number = 0; number < config.size; ++number) {
    const int index = beeline::choose_gpu(number, inventories, false);
    require(
        index >= 0, Status::invalid_argument,
        fmt::format("BEELINE_DEVICE: {}: this program's devices are GPUs, or host devices, not both", config.device));
    devices.push_back(hpe::Device::gpu(visible[static_cast<std::size_t>(index)].index));
  }
  return devices;
}

}  // namespace

Devices devices_for(const beeline::Config& config) {
  require(config.size == 1 || config.threads, Status::invalid_argument,
          "this program's process drives all its devices: start it by beeline-launch --threads");
  require(config.split_nodes == 1, Status::invalid_argument, "this program runs on one node: leave --split-nodes out");
  if (config.device == "cpu") return host_devices(config.size);
  const std::vector<beeline::Device> visible = beeline::visible_gpus();
  if (config.device == "auto" && visible.empty()) return host_devices(config.size);
  const Devices devices = named_gpus(config, visible);
  for (std::size_t one = 0; one < devices.size(); ++one)
    require(
        std::count(devices.begin(), devices.end(), devices[one]) == 1, Status::invalid_argument,
        fmt::format("{} devices: {} is named more than once, and this process sees {} GPUs: choose fewer devices, or "
                    "--device cpu",
                    devices.size(), devices[one].name(), visible.size()));
  return devices;
}

std::vector<beeline::Device> described(const Devices& devices) {
  const std::vector<beeline::Device> visible =
      devices.front().is_gpu() ? beeline::visible_gpus() : std::vector{beeline::host_device()};
  std::vector<beeline::Device> all;
  for (const hpe::Device& device : devices)
    all.push_back(*std::ranges::find_if(
        visible, [&](const beeline::Device& one) { return !device.is_gpu() || one.index == device.index(); }));
  return all;
}

bool all_reach(const Devices& devices) {
  return std::ranges::all_of(devices, [&](const hpe::Device& from) {
    return std::ranges::all_of(devices, [&](const hpe::Device& to) { return from == to || from.reaches(to); });
  });
}

std::string why_no_reach(const beeline::Config& config) {
  return all_reach(devices_for(config))
             ? ""
             : "kernels have to read other devices' memory, and these devices do not reach it";
}

beeline::LaunchOptions launch_options(const hpe::Stream& stream, std::size_t blocks, unsigned threads) {
  constexpr std::size_t most = 1 << 20;
  if (!stream.device().is_gpu()) return {.blocks = 1, .threads = 1};
  return {.blocks = static_cast<unsigned>(std::clamp<std::size_t>(blocks, 1, most)), .threads = threads};
}

void require_room(const Devices& devices, const DeviceNeed& need) {
  const bool on_gpus = devices.front().is_gpu();
  std::size_t host_bytes = need.host_bytes + need.reference_bytes;
  if (on_gpus) {
    std::size_t bytes = need.device_bytes + need.first_bytes;
    for (const beeline::Device& gpu : described(devices)) {
      require(
          bytes <= gpu.memory_bytes, Status::no_resource,
          fmt::format("{} needs {:.1f} GiB of a GPU's memory, and {} has {:.1f}: choose a smaller size, or more GPUs",
                      need.problem, gibibytes(bytes), gpu.name, gibibytes(gpu.memory_bytes)));
      bytes = need.device_bytes;
    }
  } else {
    host_bytes += need.device_bytes * devices.size() + need.first_bytes;
  }
  const std::size_t there = beeline::host_device().memory_bytes;
  require(
      host_bytes <= there, Status::no_resource,
      fmt::format("{} needs {:.1f} GiB of host memory, {:.1f} of it for the reference, and this machine has {:.1f}: "
                  "choose a smaller size{}",
                  need.problem, gibibytes(host_bytes), gibibytes(need.reference_bytes), gibibytes(there),
                  need.reference_bytes > 0 ? ", or --no-verify" : ""));
}

}  // namespace apps
