// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The copy of an object in the memory of one device.

#include <cstddef>
#include <memory>

#include "beeline/hpe/device.hpp"

namespace beeline::hpe::detail {

/// Zero at first. Its functions are called under the object's lock.
class DeviceCopy {
 public:
  virtual ~DeviceCopy() = default;
  [[nodiscard]] virtual Device device() const = 0;
  /// Where kernels of the device see the object.
  [[nodiscard]] virtual std::byte* address() const = 0;
  /// Starts a copy of a part to host memory, once the device's kernels that use the object have ended.
  virtual void start_fetch(std::byte* to, std::size_t offset, std::size_t bytes) = 0;
  /// Waits until all copies have ended. Throws unavailable if the device has failed, and deadline.
  virtual void finish_fetches() = 0;
  /// Whether a signal handler may fetch: no lock, allocation or call of CUDA.
  [[nodiscard]] virtual bool fetches_in_handlers() const = 0;
};

/// Addresses for an object on a GPU: the GPU's memory for kernels, and for the program whatever is mapped over them.
/// Source: `K22` of the specification, which a probe on H100 confirmed: the page tables of GPU and CPU differ there.
class GpuPlace {
 public:
  /// Makes memory of the GPU. Throws no_resource.
  GpuPlace(Device gpu, std::size_t bytes);
  ~GpuPlace();
  GpuPlace(const GpuPlace&) = delete;
  GpuPlace& operator=(const GpuPlace&) = delete;
  [[nodiscard]] std::byte* address() const { return address_; }
  [[nodiscard]] Device gpu() const { return gpu_; }

 private:
  const Device gpu_;
  const std::size_t bytes_;
  std::byte* address_ = nullptr;
};

/// A copy in memory of its own, at an address of its own.
[[nodiscard]] std::unique_ptr<DeviceCopy> make_copy_on(Device device, std::size_t bytes);
/// A copy in memory of a GPU that has the program's address, too; `place` outlives it.
[[nodiscard]] std::unique_ptr<DeviceCopy> make_copy_at(const GpuPlace& place, std::size_t bytes);
/// A copy in memory that the caller has allocated on the device, such as a rank's symmetric memory.
[[nodiscard]] std::unique_ptr<DeviceCopy> make_copy_over(Device device, std::byte* memory, std::size_t bytes);

}  // namespace beeline::hpe::detail
