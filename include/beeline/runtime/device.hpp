// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Devices that ranks own: GPUs found through the driver, and the host device (CPU threads).

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace beeline {

enum class DeviceKind : std::uint32_t { host, gpu };

/// What a rank runs on.
struct Device {
  DeviceKind kind = DeviceKind::host;
  int index = -1;           ///< CUDA ordinal in this process, -1 for the host device
  std::string uuid;         ///< `GPU-...`, empty for the host device
  std::string name;         ///< marketing name, or the CPU's model
  int multiprocessors = 0;  ///< GPU only
  std::size_t memory_bytes = 0;
  [[nodiscard]] bool is_gpu() const { return kind == DeviceKind::gpu; }
};

/// GPUs visible to this process (`CUDA_VISIBLE_DEVICES` respected), empty without CUDA in the build, without a driver
/// or without a device. `why_none`, if given, then says which.
[[nodiscard]] std::vector<Device> visible_gpus(std::string* why_none = nullptr);

/// The host device of this machine.
[[nodiscard]] Device host_device();

/// Devices that `choice` (auto, cpu, cuda:ID[,ID...]; ID an index or UUID) gives to `size` ranks, by rank.
/// With several ranks in one process GPUs may be shared; as processes each needs its own unless MPS runs.
/// `auto` takes GPUs when there are enough and the host device otherwise, and logs which.
/// Throws invalid_argument (unknown device) or no_resource (not enough GPUs).
[[nodiscard]] std::vector<Device> choose_devices(const std::string& choice, int size, bool threads);

}  // namespace beeline
