// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Maps GPU memory for CPU threads, by NVIDIA's Vulkan driver. CUDA offers no such mapping, but Vulkan can import a
/// descriptor that CUDA exports, as memory that is on the device and visible to the host. The driver is opened at run
/// time. Nothing is rendered or computed.

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "beeline/runtime/file_descriptor.hpp"

namespace beeline {

/// Identifies a GPU, as in cudaDeviceProp.
using GpuUuid = std::array<unsigned char, 16>;

/// A GPU opened through Vulkan. Thread-safe.
class VulkanGpu {
 public:
  virtual ~VulkanGpu() = default;
  /// The GPU with this UUID; all callers of the process share it. Takes a third of a second, and makes a context of the
  /// driver. Throws unavailable with the reason: no driver, no such GPU, or no GPU memory that is visible to the host.
  [[nodiscard]] static std::shared_ptr<VulkanGpu> open(const GpuUuid& uuid);
  /// Why `open` would throw; empty if it would not. Makes no context on the GPU.
  [[nodiscard]] static std::string reason_against(const GpuUuid& uuid);

  /// GPU memory as mapped for CPU threads: write-combining, so stores are unordered unless there is a fence.
  class Mapping {
   public:
    virtual ~Mapping() = default;
    [[nodiscard]] virtual std::byte* address() const = 0;
  };
  /// Maps a whole allocation of the GPU.
  ///   descriptor  of cuMemExportToShareableHandle
  ///   bytes       of the allocation
  /// Throws unavailable with the reason.
  [[nodiscard]] virtual std::unique_ptr<Mapping> map(FileDescriptor descriptor, std::size_t bytes) = 0;
};

}  // namespace beeline
