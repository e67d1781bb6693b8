// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <mutex>
#include <utility>
#include <vector>

#include "beeline/core/error.hpp"
#include "runtime/cuda.hpp"
#include "transport/checks.hpp"
#include "transport/host_stream.hpp"

namespace beeline {

namespace {

using cuda_api::check;
using cuda_api::CurrentGpu;
using cuda_api::driver;

class GpuEvent final : public Event {
 public:
  explicit GpuEvent(int gpu) : gpu_(gpu) {
    const CurrentGpu current(gpu);
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~GpuEvent() override { static_cast<void>(cudaEventDestroy(event_)); }
  [[nodiscard]] bool done() const override {
    const CurrentGpu current(gpu_);
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaEventQuery");
    return true;
  }
  [[nodiscard]] cudaEvent_t native() const { return event_; }

 private:
  int gpu_;
  cudaEvent_t event_ = nullptr;
};

class GpuStream final : public Stream {
 public:
  GpuStream(const Device& device, std::shared_ptr<GridState> grid_state)
      : device_(device), grid_state_(std::move(grid_state)) {
    const CurrentGpu current(device.index);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamCreateWithFlags(&release_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~GpuStream() override {
    static_cast<void>(cudaStreamDestroy(release_));
    static_cast<void>(cudaStreamDestroy(stream_));
  }

  const Device& device() const override { return device_; }

  void copy(void* destination, const void* source, std::size_t bytes) override {
    check_copy(destination, source, bytes);
    if (bytes == 0) return;
    const CurrentGpu current(device_.index);
    check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }
  void fill(void* destination, unsigned char value, std::size_t bytes) override {
    if (bytes == 0) return;
    const CurrentGpu current(device_.index);
    check(cudaMemsetAsync(destination, value, bytes, stream_), "cudaMemsetAsync");
  }
  void write_signal(std::uint64_t* signal, std::uint64_t value) override {
    check_signal(signal);
    const CurrentGpu current(device_.index);
    check(driver().stream_write_value(stream_, reinterpret_cast<CUdeviceptr>(signal), value,
                                      CU_STREAM_WRITE_VALUE_DEFAULT),
          "cuStreamWriteValue64");
  }
  void wait_signal(std::uint64_t* signal, std::uint64_t value) override {
    check_signal(signal);
    const CurrentGpu current(device_.index);
    const std::lock_guard lock(mutex_);
    check(driver().stream_wait_value(stream_, reinterpret_cast<CUdeviceptr>(signal), value, CU_STREAM_WAIT_VALUE_GEQ),
          "cuStreamWaitValue64");
    armed_.push_back({signal, value});
  }
  bool holds_signal_waits() override {
    const std::lock_guard lock(mutex_);
    return !armed_.empty();
  }
  void release_waits() override {
    const CurrentGpu current(device_.index);
    const std::lock_guard lock(mutex_);
    for (const auto& [signal, value] : armed_)
      check(driver().stream_write_value(release_, reinterpret_cast<CUdeviceptr>(signal), value,
                                        CU_STREAM_WRITE_VALUE_DEFAULT),
            "cuStreamWriteValue64");
    armed_.clear();
  }

  std::unique_ptr<Event> make_event() override { return std::make_unique<GpuEvent>(device_.index); }
  void record(Event& event) override {
    const CurrentGpu current(device_.index);
    check(cudaEventRecord(dynamic_cast<GpuEvent&>(event).native(), stream_), "cudaEventRecord");
  }
  void wait_event(Event& event) override {
    const CurrentGpu current(device_.index);
    check(cudaStreamWaitEvent(stream_, dynamic_cast<GpuEvent&>(event).native(), 0), "cudaStreamWaitEvent");
  }

  bool drained() const noexcept override { return cudaStreamQuery(stream_) != cudaErrorNotReady; }
  bool sleep_until_drained(std::int64_t) override { return false; }
  bool idle() override {
    const CurrentGpu current(device_.index);
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) return false;
    check(state, "work on a stream");
    const std::lock_guard lock(mutex_);
    armed_.clear();
    return true;
  }
  void* native() const override { return stream_; }
  void enqueue(std::function<void()>) override {
    throw Error(Status::unavailable, "a GPU's stream runs kernels and copies, not CPU functions");
  }
  GridState* grid_state() const override { return grid_state_.get(); }

 private:
  struct ArmedWait {
    std::uint64_t* signal;
    std::uint64_t value;
  };

  const Device device_;
  const std::shared_ptr<GridState> grid_state_;
  cudaStream_t stream_ = nullptr, release_ = nullptr;
  std::mutex mutex_;
  std::vector<ArmedWait> armed_;  ///< waits since the stream was last seen idle
};

}  // namespace

std::unique_ptr<Stream> make_gpu_stream(const Device& device, const Context&, std::shared_ptr<GridState> grid_state) {
  return std::make_unique<GpuStream>(device, std::move(grid_state));
}

}  // namespace beeline
