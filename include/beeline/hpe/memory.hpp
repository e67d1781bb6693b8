// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory of devices, and the owner of any pointer.

#include <cstddef>
#include <memory>

#include "beeline/hpe/device.hpp"

namespace beeline::hpe {

/// Memory of one device, aligned to 256 bytes. Its content is undefined at first. On a host device it is host memory,
/// pinned if the process has GPUs. Copies and kernels that use the memory must have ended before its destruction.
class DeviceMemory {
 public:
  /// Throws invalid_argument for 0 bytes, no_resource, and unavailable for a device that does not work.
  DeviceMemory(Device device, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;

  [[nodiscard]] std::byte* data() const;
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] Device device() const;
  /// `data()` as a pointer to elements.
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data());
  }

 private:
  class Allocation;
  std::unique_ptr<Allocation> allocation_;
};

/// Host memory, aligned to a page, that every GPU of the process reaches at its address, and that GPUs copy fastest.
/// On a machine without GPUs it is ordinary memory. Copies that use it must have ended before its destruction.
class PinnedMemory {
 public:
  /// Throws invalid_argument for 0 bytes, and no_resource.
  explicit PinnedMemory(std::size_t bytes);
  ~PinnedMemory();
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;

  [[nodiscard]] std::byte* data() const;
  [[nodiscard]] std::size_t bytes() const;
  /// `data()` as a pointer to elements.
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data());
  }

 private:
  class Allocation;
  std::unique_ptr<Allocation> allocation_;
};

/// What a pointer refers to.
enum class Memory {
  device,    ///< memory of a GPU or of a host device
  pinned,    ///< host memory that GPUs reach
  managed,   ///< memory that the CUDA driver moves between GPUs and host
  pageable,  ///< other memory of the process
  object     ///< an object of this layer
};

/// The owner of a pointer.
struct Owner {
  Memory memory = Memory::pageable;
  Device device = Device::host();    ///< the first host device for pinned and pageable memory
  const std::byte* start = nullptr;  ///< start of the allocation; nullptr: unknown, as for pageable memory
  std::size_t bytes = 0;             ///< length of the allocation, if `start` is known
};
/// The owner of `pointer`, which may be of memory that this layer, CUDA or anything else allocated. Takes no lock.
/// Throws invalid_argument for an address that belongs to nobody: no memory of CUDA, and not mapped.
/// Source: seed 001, unified virtual address space.
[[nodiscard]] Owner owner_of(const void* pointer);

}  // namespace beeline::hpe
