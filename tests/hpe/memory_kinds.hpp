// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory of each kind that a process has.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/memory.hpp"

namespace beeline_test {

/// Some memory, and its kind in words.
struct AnyMemory {
  std::string kind;
  std::shared_ptr<void> held;
  std::byte* start;
};

/// Memory of `bytes` bytes of each kind: pageable, pinned, of two devices (GPUs if there are any), of a host device.
inline std::vector<AnyMemory> memory_of_each_kind(std::size_t bytes) {
  using namespace beeline::hpe;
  std::vector<AnyMemory> all;
  const auto add = [&](std::string kind, auto held, std::byte* start) {
    all.push_back({std::move(kind), std::move(held), start});
  };
  auto pageable = std::make_shared<std::vector<std::byte>>(bytes);
  add("pageable", pageable, pageable->data());
  auto pinned = std::make_shared<PinnedMemory>(bytes);
  add("pinned", pinned, pinned->data());
  std::vector<Device> devices = Device::all(2);
  if (devices.front().is_gpu()) devices.push_back(Device::host());
  for (const Device device : devices) {
    auto memory = std::make_shared<DeviceMemory>(device, bytes);
    add(device.name(), memory, memory->data());
  }
  return all;
}

/// Bytes that depend on `seed` and position.
inline std::vector<std::byte> test_bytes(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>((i * 2654435761u + seed * 40503u) >> 7);
  return all;
}

}  // namespace beeline_test
