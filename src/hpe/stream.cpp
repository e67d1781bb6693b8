// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/stream.hpp"

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/device/group.hpp"
#include "beeline/device/signal.hpp"
#include "core/exception_text.hpp"
#include "hpe/exact_sleeps.hpp"
#include "hpe/gpu.hpp"
#include "hpe/stream_state.hpp"
#include "transport/checks.hpp"
#include "transport/host_stream.hpp"

namespace beeline::hpe {

namespace detail {

StreamState::StreamState(DeviceState& device, std::unique_ptr<beeline::Stream> own)
    : device_(device), own_(own.get()), words_(device.device().is_gpu()), marks_(device.device().is_gpu()),
      stream_(make_reaching_stream(device, std::move(own)).release()) {
  device_.add(&mutex_);
}

std::unique_ptr<StreamState> StreamState::make(DeviceState& device, StreamPriority priority) {
  device.require_working();
  return std::unique_ptr<StreamState>(
      new StreamState(device, make_stream(device.info(), device.context(), nullptr, priority)));
}

std::unique_ptr<StreamState> StreamState::adopt(DeviceState& device, void* native) {
  device.require_working();
  return std::unique_ptr<StreamState>(new StreamState(device, adopt_gpu_stream(device.info(), nullptr, native)));
}

StreamState::~StreamState() {
  device_.remove(&mutex_);
  if (!stream_.get_deleter().is_own()) {
    words_.leave();
    marks_.leave();
    return;
  }
  try {
    if (own_->capture() == 0) synchronize({});
  } catch (...) {                 // work may have thrown anything
    if (!device_.has_failed()) {  // otherwise calls have said so
      log(LogLevel::error,
          fmt::format("a stream of {} ends: {}", device_.device().name(), beeline::detail::current_exception_text()));
      end_waits();
    }
    if (own_->drained()) return;
    keep_identity();
    // Its destructor would wait for the work without a deadline.
    if (!device_.device().is_gpu()) static_cast<void>(stream_.release());
  }
}

/// Objects, and streams that wait for this one, know the work that is left by the identity.
void StreamState::keep_identity() {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<std::byte>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(identity_));
}

/// Ends the stream's waits for words, so that its other work goes on and ends.
void StreamState::end_waits() noexcept {
  words_.leave();
  marks_.leave();
  try {
    own_->release_waits();
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("the waits of a stream of {}: {}", device_.device().name(), error.what()));
  }
}

void StreamState::explain(const Error& error) {
  device_.require_working();
  if (error.code() != Status::internal || !device_.device().is_gpu()) return;
  const std::string fault = gpu::fault(device_.device().index());
  if (fault.empty()) return;
  device_.fail(fmt::format("a kernel or copy has failed ({})", fault));
  throw Error(Status::internal, fmt::format("{}: a kernel or copy has failed: {}; this process cannot use it any more",
                                            device_.device().name(), fault));
}

bool StreamState::is_done() {
  device_.require_working();
  try {
    return stream_->idle();
  } catch (const Error& error) {
    explain(error);
    throw;
  }
}

bool StreamState::is_done_soon() {
  constexpr int polls = 4;  // each takes less time than the clock, an interrupt's check and a yield together
  for (int poll = 0; poll < polls; ++poll)
    if (is_done()) return true;
  return false;
}

void StreamState::nap(std::chrono::nanoseconds period) const {
  // A host device's stream wakes this thread at its end; a GPU's is polled.
  constexpr std::chrono::milliseconds longest{10};
  const bool sleeps =
      !device_.device().is_gpu() && own_->sleep_until_drained(std::chrono::nanoseconds(longest).count());
  if (!sleeps) std::this_thread::sleep_for(period);
}

void StreamState::synchronize(const Waiting& waiting) {
  using Clock = beeline::detail::Deadline::Clock;
  if (is_done_soon()) return;
  const std::int64_t limit = waiting.deadline ? waiting.deadline->count() : Runtime::get().config().stream_deadline_ns;
  const beeline::detail::Deadline deadline(limit);
  const auto sleeps_from = Clock::now() + Waiting::without_sleep;
  std::optional<ExactSleeps> exact;
  while (!is_done_soon()) {
    if (deadline.passed())
      throw Error(Status::deadline, fmt::format("a wait for a stream of {} did not end within {} s",
                                                device_.device().name(), deadline.total_seconds()));
    beeline::detail::throw_if_interrupted(-1);
    if (waiting.poll_period.count() == 0 || Clock::now() < sleeps_from) {
      std::this_thread::yield();
      continue;
    }
    if (!exact) exact.emplace();
    nap(waiting.poll_period);
  }
}

void StreamState::wait_for(StreamState& other) {
  device_.require_working();
  if (other.device_.device().is_gpu())
    wait_for_gpu(other);
  else
    wait_for_host(other);
}

namespace {
/// A GPU's stream may wait for the stream that polls. Calls of CUDA may not end before that, so that the poll makes
/// none unless the GPU may have a fault.
constexpr std::int64_t longest_wait_without_cuda_ns = 1'000'000'000;
}  // namespace

void StreamState::wait_for_gpu(StreamState& other) {
  if (!device_.device().is_gpu())
    refuse_captured(other.own(), "a point that a host device's stream waits for",
                    "each run of the graph would pass it");
  const std::shared_ptr<Event> reached = other.take_event();
  other.enqueue([&](beeline::Stream& stream) { stream.record(*reached); });
  if (device_.device().is_gpu()) return enqueue([&](beeline::Stream& stream) { stream.wait_event(*reached); });
  const std::shared_ptr<AwaitedWord> mark = other.mark_for(identity());
  std::uint64_t value = 0;
  other.enqueue_own([&](beeline::Stream& own) {
    value = mark->next_value();
    own.write_signal(mark->address(), value);
  });
  enqueue([&](beeline::Stream& stream) {
    stream.enqueue([reached, mark, value, limit = Runtime::get().config().stream_deadline_ns, &device = other.device_] {
      const beeline::detail::Deadline deadline(limit), without_cuda(longest_wait_without_cuda_ns);
      while (!mark->has(value)) {
        device.require_working();
        if (without_cuda.passed() && reached->done()) return;  // throws if the stream's work has failed
        require(!deadline.passed(), Status::deadline, "a stream's wait for a stream of " + device.device().name());
        std::this_thread::sleep_for(Waiting{}.poll_period);
      }
    });
  });
}

void StreamState::on_device(const std::function<void()>& call) const {
  if (device_.device().is_gpu())
    gpu::on(device_.device().index(), call);
  else
    call();
}

std::shared_ptr<AwaitedWord> StreamState::word_in(AwaitedWords& words, const void* other) const {
  std::shared_ptr<AwaitedWord> word;
  on_device([&] { word = words.of(other); });
  return word;
}

std::shared_ptr<AwaitedWord> StreamState::word_of(const void* storer) { return word_in(words_, storer); }
std::shared_ptr<AwaitedWord> StreamState::mark_for(const void* waiter) { return word_in(marks_, waiter); }

void StreamState::hold_until(std::uint64_t* word, std::uint64_t value) {
  enqueue_own([&](beeline::Stream& own) {
    if (device_.device().is_gpu())
      gpu::enqueue_wait(device_.device().index(), own.native(), word, value);
    else
      own.wait_signal(word, value);
  });
}

void StreamState::wait_for_host(StreamState& other) {
  if (device_.device().is_gpu())
    refuse_captured(own(), "a wait for a host device's stream", "each run of the graph would wait for the same work");
  const std::shared_ptr<AwaitedWord> word = word_of(other.identity());
  std::uint64_t value = 0;
  other.enqueue([&](beeline::Stream& stream) {
    value = word->next_value();
    // The work's destructor stores, if the stream skips the work after a failure.
    std::shared_ptr<void> stored(word->address(), [word, value](void*) { word->store(value); });
    stream.enqueue([stored = std::move(stored)]() mutable { stored.reset(); });
  });
  if (device_.device().is_gpu())
    return enqueue([&](beeline::Stream& stream) { stream.wait_signal(word->address(), value); });
  enqueue([&](beeline::Stream& stream) {
    stream.enqueue([word, value, &device = device_, to = other.device_.device()] {
      const Status status = wait(Thread{}, device.context(), word->address(), Compare::greater_equal, value);
      if (status == Status::ok) return;
      throw Error(status, fmt::format("a stream of {} waits for a stream of {}: expected its mark {}, observed {}",
                                      device.device().name(), to.name(), value,
                                      std::atomic_ref(*word->address()).load(std::memory_order_relaxed)));
    });
  });
}

StreamState& StreamState::stream_beside(DeviceState& gpu) {
  const std::lock_guard lock(beside_mutex_);
  std::unique_ptr<StreamState>& beside = beside_[gpu.device().index()];
  if (beside == nullptr) beside = make(gpu, StreamPriority::normal);
  return *beside;
}

namespace {
DeviceState& state_of(Device device) { return Runtime::get().state_of(device); }

DeviceState& gpu_state_of(Device gpu) {
  require(gpu.is_gpu(), Status::invalid_argument, gpu.name() + " has no CUDA streams that could be adopted");
  return state_of(gpu);
}
}  // namespace

}  // namespace detail

Stream::Stream(Device device, StreamPriority priority)
    : Stream(detail::StreamState::make(detail::state_of(device), priority)) {}
Stream::Stream(std::unique_ptr<detail::StreamState> state) : state_(std::move(state)) {}
Stream Stream::adopt(Device gpu, void* native) {
  return Stream(detail::StreamState::adopt(detail::gpu_state_of(gpu), native));
}
Stream::~Stream() = default;
Stream::Stream(Stream&& other) noexcept = default;

Device Stream::device() const { return state_->device().device(); }

namespace {

thread_local const void* stream_at_work = nullptr;  ///< whose function this thread runs

void run_for(const void* stream, const std::function<void()>& work) {
  struct Former {
    const void* stream = stream_at_work;
    ~Former() { stream_at_work = stream; }
  } const former;
  stream_at_work = stream;
  work();
}

}  // namespace

void Stream::enqueue(std::function<void()> work) {
  require(work != nullptr, Status::invalid_argument, "a stream was given an empty function");
  state_->enqueue([&](beeline::Stream& stream) {
    stream.enqueue([self = state_.get(), work = std::move(work)] { run_for(self, work); });
  });
}
void Stream::wait_for(Stream& other) { state_->wait_for(*other.state_); }
bool Stream::is_done() { return state_->is_done(); }
void Stream::synchronize(const Waiting& waiting) {
  if (stream_at_work == state_.get())
    throw Error(Status::invalid_argument,
                fmt::format("a function that was enqueued on a stream of {} waits for this stream, which waits for the "
                            "function",
                            device().name()));
  state_->synchronize(waiting);
}
LockTimes Stream::lock_times() const { return state_->lock_times(); }
void* Stream::native() const { return state_->own().native(); }

}  // namespace beeline::hpe
