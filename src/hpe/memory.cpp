// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/memory.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "beeline/core/error.hpp"
#include "hpe/gpu.hpp"
#include "hpe/owners.hpp"
#include "hpe/runtime.hpp"
#include "memory/host_buffer.hpp"

namespace beeline::hpe {

using detail::OwnerTable;
using detail::Runtime;

namespace {

void require_bytes(std::size_t bytes, const std::string& where) {
  require(bytes != 0, Status::invalid_argument, "an allocation of 0 bytes " + where);
}

/// Memory of a GPU.
struct GpuMemory {
  GpuMemory(int on, std::size_t bytes) : gpu(on), start(gpu::allocate(on, bytes)) {}
  ~GpuMemory() { gpu::free(gpu, start); }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  const int gpu;
  std::byte* const start;
};

/// An entry of the table of owners, for as long as the memory exists.
class Entry {
 public:
  explicit Entry(const Owner& owner) : start_(owner.start) { OwnerTable::of_process().add({owner}); }
  ~Entry() { OwnerTable::of_process().remove(start_); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  const std::byte* const start_;
};

}  // namespace

class DeviceMemory::Allocation {
 public:
  Allocation(Device device, std::size_t bytes) : owner_{.memory = Memory::device, .device = device, .bytes = bytes} {
    require_bytes(bytes, "on " + device.name());
    device.require_working();
    if (device.is_gpu())
      start_ = gpu_.emplace(device.index(), bytes).start;
    else
      start_ = host_.emplace(bytes, Runtime::get().has_gpus(), "for a host device").data();
    owner_.start = start_;
    entry_.emplace(owner_);
  }
  [[nodiscard]] std::byte* start() const { return start_; }
  [[nodiscard]] const Owner& owner() const { return owner_; }

 private:
  Owner owner_;
  std::byte* start_ = nullptr;
  std::optional<GpuMemory> gpu_;
  std::optional<HostBuffer> host_;
  std::optional<Entry> entry_;  // removed first: the address may belong to another allocation at once
};

DeviceMemory::DeviceMemory(Device device, std::size_t bytes)
    : allocation_(std::make_unique<Allocation>(device, bytes)) {}
DeviceMemory::~DeviceMemory() = default;
DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept = default;
DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept = default;
std::byte* DeviceMemory::data() const { return allocation_->start(); }
std::size_t DeviceMemory::bytes() const { return allocation_->owner().bytes; }
Device DeviceMemory::device() const { return allocation_->owner().device; }

class PinnedMemory::Allocation {
 public:
  explicit Allocation(std::size_t bytes)
      : buffer_(bytes, Runtime::get().has_gpus(), "of pinned memory"),
        entry_({.memory = Memory::pinned, .start = buffer_.data(), .bytes = bytes}) {}
  [[nodiscard]] const HostBuffer& buffer() const { return buffer_; }

 private:
  HostBuffer buffer_;
  Entry entry_;
};

PinnedMemory::PinnedMemory(std::size_t bytes) {
  require_bytes(bytes, "of pinned memory");
  allocation_ = std::make_unique<Allocation>(bytes);
}
PinnedMemory::~PinnedMemory() = default;
PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept = default;
PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept = default;
std::byte* PinnedMemory::data() const { return allocation_->buffer().data(); }
std::size_t PinnedMemory::bytes() const { return allocation_->buffer().bytes(); }

}  // namespace beeline::hpe
