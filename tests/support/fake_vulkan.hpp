// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Controls the fake Vulkan driver: a library that the loader takes for NVIDIA's.

#include <array>
#include <string>

namespace beeline_test {

/// What fails.
enum class VulkanFailure { none, instance, visible_memory, device, allocation, mapping };

struct FakeVulkan {
  std::array<unsigned char, 16> uuid{1, 2, 3};  ///< of the only GPU
  VulkanFailure failure = VulkanFailure::none;
  std::string missing{};                         ///< name of a function that the driver lacks
  int instances = 0, devices = 0, memories = 0;  ///< that exist now
};
[[nodiscard]] FakeVulkan& fake_vulkan();

}  // namespace beeline_test
