// SPDX-License-Identifier: Apache-2.0
#include "hpe/objects/device_copy.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/hpe/memory.hpp"
#include "hpe/gpu.hpp"
#include "hpe/runtime.hpp"
#include "hpe/stream_state.hpp"
#include "memory/address_range.hpp"
#include "memory/gpu_memory.hpp"

namespace beeline::hpe::detail {

namespace {

/// Pages of the process, zero at first.
class OwnPages {
 public:
  explicit OwnPages(std::size_t bytes) : bytes_(bytes) {
    void* const given = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(given != MAP_FAILED, Status::no_resource,
            fmt::format("no {} bytes for an object's copy on a host device: {}", bytes, std::strerror(errno)));
    start_ = static_cast<std::byte*>(given);
  }
  ~OwnPages() {
    if (start_ != nullptr) ::munmap(start_, bytes_);
  }
  OwnPages(OwnPages&& other) noexcept : bytes_(other.bytes_), start_(std::exchange(other.start_, nullptr)) {}
  OwnPages& operator=(OwnPages&&) = delete;
  [[nodiscard]] std::byte* start() const { return start_; }

 private:
  const std::size_t bytes_;
  std::byte* start_;
};

class HostCopy final : public DeviceCopy {
 public:
  HostCopy(Device device, OwnPages pages)
      : state_(Runtime::get().state_of(device)), pages_(std::move(pages)), address_(pages_->start()) {}
  HostCopy(Device device, std::byte* memory) : state_(Runtime::get().state_of(device)), address_(memory) {}

  Device device() const override { return state_.device(); }
  std::byte* address() const override { return address_; }
  void start_fetch(std::byte* to, std::size_t offset, std::size_t bytes) override {
    state_.require_working();
    std::memcpy(to, address_ + offset, bytes);
  }
  void finish_fetches() override {}
  bool fetches_in_handlers() const override { return true; }

 private:
  const DeviceState& state_;
  std::optional<OwnPages> pages_;
  std::byte* const address_;
};

class GpuCopy final : public DeviceCopy {
 public:
  GpuCopy(Device gpu, std::byte* memory) : stream_(gpu), address_(memory) {}
  GpuCopy(DeviceMemory memory, std::size_t bytes)
      : stream_(memory.device()), memory_(std::move(memory)), address_(memory_->data()) {
    clear(bytes);
  }
  void clear(std::size_t bytes) {
    stream_.state().enqueue_own([&](beeline::Stream& own) { own.fill(address_, 0, bytes); });
    stream_.synchronize();
  }

  Device device() const override { return stream_.device(); }
  std::byte* address() const override { return address_; }
  void start_fetch(std::byte* to, std::size_t offset, std::size_t bytes) override {
    stream_.state().enqueue_own(
        [&](beeline::Stream& own) { gpu::enqueue_copy(device().index(), own.native(), to, address_ + offset, bytes); });
    fetched_bytes_ += bytes;
  }
  void finish_fetches() override {
    // A sleep lasts longer than the copy of a block.
    const bool is_brief = std::exchange(fetched_bytes_, 0) <= most_bytes_awaited_without_sleep;
    stream_.synchronize(is_brief ? Waiting{.poll_period = std::chrono::microseconds(0), .deadline = {}} : Waiting{});
  }
  bool fetches_in_handlers() const override { return false; }

 private:
  static constexpr std::size_t most_bytes_awaited_without_sleep = std::size_t{16} << 20;
  Stream stream_;
  std::size_t fetched_bytes_ = 0;  ///< since the last wait
  std::optional<DeviceMemory> memory_;
  std::byte* const address_;
};

}  // namespace

GpuPlace::GpuPlace(Device gpu, std::size_t bytes) : gpu_(gpu), bytes_(AddressRange::device_bytes(bytes)) {
  std::vector<int> readers;
  for (const Device& other : Device::gpus())
    if (other.reaches(gpu)) readers.push_back(other.index());
  gpu::on(gpu.index(), [&] {
    address_ = gpu_memory::reserve_anywhere(bytes_);
    try {
      static_cast<void>(gpu_memory::create(address_, bytes_, gpu.index(), readers));
    } catch (...) {
      gpu_memory::release(address_, bytes_);
      throw;
    }
  });
}

GpuPlace::~GpuPlace() {
  gpu_memory::unmap(address_, bytes_);
  gpu_memory::release(address_, bytes_);
}

std::unique_ptr<DeviceCopy> make_copy_on(Device device, std::size_t bytes) {
  if (!device.is_gpu()) return std::make_unique<HostCopy>(device, OwnPages(bytes));
  return std::make_unique<GpuCopy>(DeviceMemory(device, bytes), bytes);
}

std::unique_ptr<DeviceCopy> make_copy_at(const GpuPlace& place, std::size_t bytes) {
  auto made = std::make_unique<GpuCopy>(place.gpu(), place.address());
  made->clear(bytes);
  return made;
}

std::unique_ptr<DeviceCopy> make_copy_over(Device device, std::byte* memory, std::size_t bytes) {
  if (!device.is_gpu()) {
    std::memset(memory, 0, bytes);
    return std::make_unique<HostCopy>(device, memory);
  }
  auto made = std::make_unique<GpuCopy>(device, memory);
  made->clear(bytes);
  return made;
}

}  // namespace beeline::hpe::detail
