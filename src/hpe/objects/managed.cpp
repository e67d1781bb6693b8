// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "beeline/core/error.hpp"
#include "hpe/gpu.hpp"
#include "hpe/objects/futex_lock.hpp"
#include "hpe/objects/kernel_uses.hpp"
#include "hpe/objects/managed_memory.hpp"
#include "hpe/objects/object_state.hpp"

namespace beeline::hpe::detail {

namespace {

/// Managed memory of a GPU, zero at first.
class ManagedMemory {
 public:
  ManagedMemory(Device gpu, std::size_t bytes) : gpu_(gpu), start_(allocate_managed(gpu.index(), bytes)) {
    try {
      TakenStream stream(Runtime::get().state_of(gpu));
      stream.get().enqueue_own([&](beeline::Stream& own) { own.fill(start_, 0, bytes); });
      stream.synchronize({});
    } catch (...) {
      gpu::free(gpu_.index(), start_);
      throw;
    }
  }
  ~ManagedMemory() { gpu::free(gpu_.index(), start_); }
  ManagedMemory(const ManagedMemory&) = delete;
  ManagedMemory& operator=(const ManagedMemory&) = delete;
  [[nodiscard]] std::byte* start() const { return start_; }

 private:
  const Device gpu_;
  std::byte* const start_;
};

/// The driver moves pages at faults of GPU and CPU. The object only knows which streams use it.
class ManagedObject final : public ObjectState {
 public:
  ManagedObject(std::size_t bytes, const ObjectOptions& options, Device gpu)
      : bytes_(bytes), gpu_(gpu),
        deadline_ns_(options.deadline ? options.deadline->count() : Runtime::get().config().stream_deadline_ns),
        memory_(gpu, bytes) {}

  std::byte* data() const override { return memory_.start(); }
  std::size_t bytes() const override { return bytes_; }
  Device home() const override { return gpu_; }
  std::byte* address_on(Device) override { return memory_.start(); }
  ObjectStatistics statistics() const override { return {.block_bytes = 0, .protocol = Protocol::managed}; }

  void acquire(Stream& stream) override {
    const std::lock_guard lock(mutex_);
    KernelUses::begin_launch(uses_.of(stream.state()), true);
  }
  void release(Stream& stream) override {
    const std::lock_guard lock(mutex_);
    KernelUse& use = uses_.of(stream.state());
    KernelUses::end_launch(use);
    stream.state().enqueue_own([&](beeline::Stream& own) { own.record(*use.reached); });
  }

  void begin_access(Range, Access) override { await_kernels("a HostAccess to"); }
  void end_access() noexcept override {}
  void close() override { await_kernels("the release of"); }

 private:
  void await_kernels(const char* waiting) {
    const beeline::detail::Deadline deadline(deadline_ns_);
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (uses_.are_over(no_blocks_)) return;
        if (uses_.are_held_by(::gettid()))
          throw Error(Status::invalid_argument, fmt::format("{} {}: {}", waiting, described(), own_device_access));
      }
      require(!deadline.passed(), Status::deadline,
              fmt::format("{}, managed memory: kernels that use it did not end within {} s", described(),
                          deadline.total_seconds()));
      beeline::detail::throw_if_interrupted(-1);
      nap(20'000);
    }
  }

  const std::size_t bytes_;
  const Device gpu_;
  const std::int64_t deadline_ns_;
  const ManagedMemory memory_;
  std::mutex mutex_;
  KernelUses uses_;
  BlockMap no_blocks_{0};
};

}  // namespace

std::unique_ptr<ObjectState> make_managed_object(std::size_t bytes, const ObjectOptions& options, Device device) {
  require(bytes > 0, Status::invalid_argument, "an object of 0 bytes");
  require(device.is_gpu(), Status::invalid_argument,
          fmt::format("managed memory is memory of GPUs, and {} is none: use another protocol", device.name()));
  require(options.hint != Hint::device_only && options.device_memory == nullptr, Status::invalid_argument,
          "managed memory is neither for the device only nor in memory that was given");
  return std::make_unique<ManagedObject>(bytes, options, device);
}

}  // namespace beeline::hpe::detail
