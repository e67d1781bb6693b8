// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/transport/impl/known_capture.hpp"
#include "runtime/cuda.hpp"
#include "transport/checks.hpp"
#include "transport/host_stream.hpp"

namespace beeline {

namespace {

using cuda_api::BesideCaptures;
using cuda_api::check;
using cuda_api::CurrentGpu;
using cuda_api::driver;
using cuda_api::UsedGpu;

struct Capture {
  std::uint64_t id = 0;  ///< 0: none
  cudaGraph_t graph = nullptr;
};

/// A priority as CUDA's number for the current GPU: the greatest priority has the lowest number.
int cuda_priority(StreamPriority priority) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  return priority == StreamPriority::high ? greatest : 0;
}

int cuda_priority_of(cudaStream_t stream) {
  int priority = 0;
  check(cudaStreamGetPriority(stream, &priority), "cudaStreamGetPriority");
  return priority;
}

/// A word of the current GPU for the first work of streams; kept as long as the process.
void* first_work_word() {
  static std::mutex mutex;
  static std::map<int, void*> words;
  int gpu = 0;
  check(cudaGetDevice(&gpu), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  void*& word = words[gpu];
  if (word == nullptr) check(cudaMalloc(&word, sizeof(std::uint64_t)), "cudaMalloc");
  return word;
}

/// Gives a new stream work. Returns whether the GPU has completed it in time.
bool does_first_work(cudaStream_t stream) {
  constexpr std::chrono::milliseconds limit(20);
  check(cudaMemsetAsync(first_work_word(), 0, sizeof(std::uint64_t), stream), "cudaMemsetAsync");
  const auto end = std::chrono::steady_clock::now() + limit;
  for (cudaError_t state = cudaStreamQuery(stream); state != cudaSuccess; state = cudaStreamQuery(stream)) {
    if (state != cudaErrorNotReady) check(state, "first work of a stream");
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();  // the driver's own threads, and other ranks, may need this core
  }
  return true;
}

/// Makes a stream whose first work is done. The driver sometimes delays the first work of a new stream until kernels
/// that wait on this GPU end (docs/design-host.md, Residency); ranks that share the GPU would then reach the deadline.
/// If the first work does not run, another stream is tried. On a GPU that is full of long kernels the last attempt is
/// used.
cudaStream_t create_stream(int cuda_priority) {
  constexpr int attempts = 4;
  for (int attempt = 1;; ++attempt) {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, cuda_priority), "cudaStreamCreate");
    if (does_first_work(stream) || attempt == attempts) return stream;
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");  // takes effect when the work is done
  }
}

/// The capture that a stream is in. Throws unavailable if an error has ended the capture.
Capture capture_of(cudaStream_t stream) {
  // Most streams are in no capture, and this query takes a third of the time of the next one.
  CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
  if (driver().is_capturing(stream, &now) == CUDA_SUCCESS && now == CU_STREAM_CAPTURE_STATUS_NONE) return {};
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  check(cudaStreamGetCaptureInfo(stream, &status, &id, &graph), "cudaStreamGetCaptureInfo");
  require(status != cudaStreamCaptureStatusInvalidated, Status::unavailable,
          "the stream's capture into a graph has failed, by an earlier error: end it");
  return status == cudaStreamCaptureStatusActive ? Capture{id, graph} : Capture{};
}

std::uint64_t capture_id(cudaStream_t stream) {
  const auto* const known = detail::KnownCapture::of(stream);
  return known != nullptr ? known->id() : capture_of(stream).id;
}

class GpuEvent final : public Event {
 public:
  explicit GpuEvent(int gpu) : gpu_(gpu) {
    const CurrentGpu current(gpu);
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~GpuEvent() override {
    const BesideCaptures beside;
    static_cast<void>(cudaEventDestroy(event_));
  }
  [[nodiscard]] bool done() const override {
    if (record_.load() > 0) refuse_capture("a wait for an event", "the event was recorded while a graph was captured");
    const CurrentGpu current(gpu_);
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaEventQuery");
    return true;
  }
  void record(cudaStream_t stream) {
    check(driver().event_record(event_, stream), "cuEventRecord");
    record_ = static_cast<std::int64_t>(capture_id(stream));
  }
  /// Holds later work of `stream`, which is in `capture` (0: none).
  void hold(cudaStream_t stream, std::uint64_t capture) const {
    const std::int64_t recorded = record_.load();
    if (recorded == never) return;
    if (capture != 0 && recorded != static_cast<std::int64_t>(capture))
      refuse_capture("wait_event", "the event was recorded outside this capture");
    check(driver().stream_wait_event(stream, event_, 0), "cuStreamWaitEvent");
  }

 private:
  static constexpr std::int64_t never = -1;
  int gpu_;
  cudaEvent_t event_ = nullptr;
  std::atomic<std::int64_t> record_{never};  ///< the capture that the last record belongs to; 0: none
};

/// Rings when a stream has completed its work so far. Called by a thread of CUDA's; never rings if the stream fails.
class Alarm {
 public:
  [[nodiscard]] static std::shared_ptr<Alarm> set(cudaStream_t stream) {
    auto alarm = std::make_shared<Alarm>();
    auto held =
        std::make_unique<std::shared_ptr<Alarm>>(alarm);  // the sleeping thread may have left before the alarm rings
    const auto ring = [](void* data) {
      const std::unique_ptr<std::shared_ptr<Alarm>> last(static_cast<std::shared_ptr<Alarm>*>(data));
      (*last)->ring();
    };
    check(cudaLaunchHostFunc(stream, ring, held.get()), "cudaLaunchHostFunc");
    static_cast<void>(held.release());
    return alarm;
  }
  [[nodiscard]] bool has_rung() {
    const std::lock_guard lock(mutex_);
    return rung_;
  }
  void sleep(std::int64_t longest_ns) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::nanoseconds(longest_ns), [this] { return rung_; });
  }

 private:
  void ring() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

/// The first failure of a function that a stream has called on the CPU. The stream's user may be gone by then.
class HostFailure {
 public:
  void keep(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  [[nodiscard]] std::exception_ptr take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(failure_, nullptr);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
};

struct HostWork {
  std::function<void()> call;
  std::shared_ptr<HostFailure> failure;
};

CUstreamBatchMemOpParams stream_write(const SignalWrite& write) {
  CUstreamBatchMemOpParams params{};
  params.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  params.writeValue.address = reinterpret_cast<CUdeviceptr>(write.signal);
  params.writeValue.value64 = write.value;
  params.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return params;
}

class GpuStream final : public Stream {
 public:
  GpuStream(const Device& device, std::shared_ptr<GridState> grid_state, StreamPriority priority)
      : device_(device), grid_state_(std::move(grid_state)), owned_(true) {
    const CurrentGpu current(device.index);
    stream_ = create_stream(cuda_priority(priority));
    release_ = create_stream(cuda_priority_of(stream_));
  }
  /// `adopted`: a stream that the program makes and destroys itself.
  GpuStream(const Device& device, std::shared_ptr<GridState> grid_state, cudaStream_t adopted)
      : device_(device), grid_state_(std::move(grid_state)), stream_(adopted), owned_(false) {
    const CurrentGpu current(device.index);
    check_device();
    release_ = create_stream(cuda_priority_of(stream_));
  }
  ~GpuStream() override {
    const BesideCaptures beside;
    static_cast<void>(cudaStreamDestroy(release_));
    if (owned_) static_cast<void>(cudaStreamDestroy(stream_));
  }

  const Device& device() const override { return device_; }

  void copy(void* destination, const void* source, std::size_t bytes) override {
    if (!moves_anything(destination, source, bytes)) return;
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
    refuse_fixed_value("a signal");
    const CurrentGpu current(device_.index);
    check(driver().stream_write_value(stream_, reinterpret_cast<CUdeviceptr>(signal), value,
                                      CU_STREAM_WRITE_VALUE_DEFAULT),
          "cuStreamWriteValue64");
  }
  void write_signals(const SignalWrite& first, const SignalWrite& second) override {
    check_signal(first.signal);
    check_signal(second.signal);
    refuse_fixed_value("a signal");
    const CurrentGpu current(device_.index);
    std::array<CUstreamBatchMemOpParams, 2> writes = {stream_write(first), stream_write(second)};
    check(driver().stream_batch(stream_, writes.size(), writes.data(), 0), "cuStreamBatchMemOp");
  }
  void wait_signal(std::uint64_t* signal, std::uint64_t value) override {
    check_signal(signal);
    refuse_fixed_value("a wait for a signal");
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
    const UsedGpu current(device_.index);
    dynamic_cast<GpuEvent&>(event).record(stream_);
    event.teams = launched_teams_.teams();
  }
  void wait_event(Event& event) override {
    const UsedGpu current(device_.index);
    dynamic_cast<GpuEvent&>(event).hold(stream_, capture());
    launched_teams_.hand_on(event.teams);
  }

  bool drained() const noexcept override {
    const BesideCaptures beside;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t asked = cudaStreamIsCapturing(stream_, &status);
    // A query would end a capture: this stream's, or for the legacy default stream any other's.
    if (status != cudaStreamCaptureStatusNone || asked == cudaErrorStreamCaptureImplicit) return false;
    return cudaStreamQuery(stream_) != cudaErrorNotReady;
  }
  bool sleep_until_drained(std::int64_t longest_ns) override {
    const CurrentGpu current(device_.index);
    std::shared_ptr<Alarm> alarm;
    {
      const std::lock_guard lock(mutex_);
      if (alarm_ == nullptr || alarm_->has_rung()) alarm_ = Alarm::set(stream_);
      alarm = alarm_;
    }
    alarm->sleep(longest_ns);
    return true;
  }
  bool idle() override {
    const CurrentGpu current(device_.index);
    refuse_captured(*this, "a wait for a stream", "nothing of what is captured has run");
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) return false;
    check(state, "work on a stream");
    {
      const std::lock_guard lock(mutex_);
      armed_.clear();
    }
    if (const std::exception_ptr failure = failure_->take()) std::rethrow_exception(failure);
    return true;
  }
  void* native() const override { return stream_; }
  void enqueue(std::function<void()> work) override {
    const CurrentGpu current(device_.index);
    refuse_captured(*this, "work of the CPU", "it is done once");
    auto held = std::make_unique<HostWork>(HostWork{std::move(work), failure_});
    const auto run = [](void* data) {
      const std::unique_ptr<HostWork> mine(static_cast<HostWork*>(data));
      try {
        mine->call();
      } catch (...) {
        mine->failure->keep(std::current_exception());
      }
    };
    check(cudaLaunchHostFunc(stream_, run, held.get()), "cudaLaunchHostFunc");
    static_cast<void>(held.release());
  }
  GridState* grid_state() const override { return grid_state_.get(); }
  LaunchedTeams& launched_teams() override { return launched_teams_; }

  std::uint64_t capture() const override { return capture_id(stream_); }
  void keep_with_graph(std::shared_ptr<void> held) override {
    const CurrentGpu current(device_.index);
    const Capture capture = capture_of(stream_);
    require(capture.graph != nullptr, Status::invalid_argument, "the stream is in no capture");
    auto kept = std::make_unique<std::shared_ptr<void>>(std::move(held));
    const auto let_go = [](void* last) { delete static_cast<std::shared_ptr<void>*>(last); };
    cudaUserObject_t object = nullptr;
    check(cudaUserObjectCreate(&object, kept.get(), let_go, 1, cudaUserObjectNoDestructorSync), "cudaUserObjectCreate");
    static_cast<void>(kept.release());
    const cudaError_t result = cudaGraphRetainUserObject(capture.graph, object, 1, cudaGraphUserObjectMove);
    if (result != cudaSuccess) static_cast<void>(cudaUserObjectRelease(object, 1));
    check(result, "cudaGraphRetainUserObject");
  }

 private:
  void refuse_fixed_value(const std::string& what) const {
    refuse_captured(*this, what + " with a fixed value", fixed_in_graphs);
  }
  void check_device() const {
    if (capture() != 0)
      return;  // CUDA does not report the GPU during a capture, and asking would end it; on another GPU launches fail
    int index = -1;
    check(cudaStreamGetDevice(stream_, &index), "cudaStreamGetDevice");
    require(index == device_.index, Status::invalid_argument,
            fmt::format("a stream of GPU {} for a rank on GPU {}", index, device_.index));
  }

  struct ArmedWait {
    std::uint64_t* signal;
    std::uint64_t value;
  };

  const Device device_;
  const std::shared_ptr<GridState> grid_state_;
  LaunchedTeams launched_teams_;
  cudaStream_t stream_ = nullptr;
  cudaStream_t release_ = nullptr;  ///< its work ends the waits of `stream_`; same priority
  const bool owned_;
  std::mutex mutex_;
  std::shared_ptr<Alarm> alarm_;
  const std::shared_ptr<HostFailure> failure_ = std::make_shared<HostFailure>();
  std::vector<ArmedWait> armed_;  ///< waits since the stream was last seen idle
};

}  // namespace

std::unique_ptr<Stream> make_gpu_stream(const Device& device, const Context&, std::shared_ptr<GridState> grid_state,
                                        StreamPriority priority) {
  return std::make_unique<GpuStream>(device, std::move(grid_state), priority);
}

std::unique_ptr<Stream> adopt_gpu_stream(const Device& device, std::shared_ptr<GridState> grid_state, void* native) {
  const auto stream = native == nullptr ? cudaStreamLegacy : static_cast<cudaStream_t>(native);
  return std::make_unique<GpuStream>(device, std::move(grid_state), stream);
}

}  // namespace beeline
