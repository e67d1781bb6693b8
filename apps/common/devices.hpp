// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The devices of a program without ranks: one process drives all of them.

#include <cstddef>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/hpe/device.hpp"
#include "beeline/hpe/stream.hpp"
#include "beeline/runtime/device.hpp"

namespace apps {

using Devices = std::vector<beeline::hpe::Device>;

/// The `Config::size` different devices that `Config::device` names: auto (GPUs if this process sees any, otherwise
/// host devices), cpu, or GPUs. Throws invalid_argument if there are too few GPUs, for GPUs and host devices together,
/// and for settings that make ranks of processes or nodes; no_resource above the most host devices.
[[nodiscard]] Devices devices_for(const beeline::Config& config);

/// The devices as the runtime describes them.
[[nodiscard]] std::vector<beeline::Device> described(const Devices& devices);

/// Whether every device reaches the memory of every other one directly.
[[nodiscard]] bool all_reach(const Devices& devices);
/// Why kernels of these devices cannot read each other's memory; empty if they can. For `MethodText::why_not`.
[[nodiscard]] std::string why_no_reach(const beeline::Config& config);

/// A launch of up to `blocks` blocks of `threads` threads, at most a million. A host device runs a kernel on one
/// thread, so that each device has one.
[[nodiscard]] beeline::LaunchOptions launch_options(const beeline::hpe::Stream& stream, std::size_t blocks,
                                                    unsigned threads);

/// The memory that a problem needs.
struct DeviceNeed {
  std::string problem;              ///< its description in messages, as "a volume of 64x64x64 on 4 devices"
  std::size_t device_bytes = 0;     ///< memory of each device
  std::size_t first_bytes = 0;      ///< further memory of the first device
  std::size_t host_bytes = 0;       ///< host memory beside that of host devices, without the reference
  std::size_t reference_bytes = 0;  ///< host memory for the serial reference and the result
};
/// Throws no_resource when the machine's memory is too small even if nothing else runs.
void require_room(const Devices& devices, const DeviceNeed& need);

}  // namespace apps
