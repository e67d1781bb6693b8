// SPDX-License-Identifier: Apache-2.0
#include "hpe/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/fork.hpp"
#include "hpe/gpu.hpp"
#include "hpe/stream_state.hpp"
#include "memory/gpu_pointers.hpp"

namespace beeline::hpe::detail {

LonelyContext::LonelyContext(std::int64_t deadline_ns) {
  context_.abort_words = &abort_word_;
  context_.host_abort_words = &abort_word_;
  context_.waits = table_.records;
  context_.wait_claims = &claims_;
  context_.deadline_ns = static_cast<std::uint64_t>(deadline_ns);
  context_.slot_shift = min_slot_shift;
  context_.slots = 1;
  context_.size = 1;
  constexpr std::uint32_t spins = 64;
  context_.polling = Polling(spins);
}

void LonelyContext::end_waits() {
  std::atomic_ref<std::uint64_t>(abort_word_).store(abort_word(0), std::memory_order_relaxed);
}

DeviceState::DeviceState(Device device, beeline::Device info, std::int64_t deadline_ns)
    : device_(device), info_(std::move(info)), context_(deadline_ns) {}
DeviceState::~DeviceState() = default;

void DeviceState::refuse() const {
  const std::lock_guard lock(mutex_);
  throw Error(Status::unavailable, fmt::format("{} cannot be used any more: {}", device_.name(), reason_));
}

void DeviceState::fail(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason;
  }
  has_failed_.store(true, std::memory_order_release);
  context_.end_waits();
}

std::unique_ptr<StreamState> DeviceState::take_stream() {
  require_working();
  sort_late_streams();
  {
    const std::lock_guard lock(mutex_);
    if (!streams_.empty()) {
      std::unique_ptr<StreamState> stream = std::move(streams_.back());
      streams_.pop_back();
      return stream;
    }
  }
  return StreamState::make(*this, StreamPriority::normal);
}

void DeviceState::sort_late_streams() {
  std::vector<std::unique_ptr<StreamState>> late;
  {
    const std::lock_guard lock(mutex_);
    if (late_.empty()) return;
    late.swap(late_);
  }
  for (std::unique_ptr<StreamState>& stream : late) {
    try {
      const bool has_ended = stream->is_done();
      give_back(std::move(stream), has_ended);
    } catch (const std::exception& error) {  // its call has ended with an error before
      log(LogLevel::warning, fmt::format("late work of a copy on {} has failed: {}", device_.name(), error.what()));
    }
  }
}

void DeviceState::give_back(std::unique_ptr<StreamState> stream, bool has_ended) {
  const std::lock_guard lock(mutex_);
  (has_ended ? streams_ : late_).push_back(std::move(stream));
}

void DeviceState::add(const MeasuredMutex* mutex) {
  const std::lock_guard lock(mutex_);
  mutexes_.push_back(mutex);
}

void DeviceState::remove(const MeasuredMutex* mutex) {
  const std::lock_guard lock(mutex_);
  std::erase(mutexes_, mutex);
  ended_ += mutex->times();
}

LockTimes DeviceState::lock_times() const {
  const std::lock_guard lock(mutex_);
  LockTimes sum = ended_;
  for (const MeasuredMutex* mutex : mutexes_) sum += mutex->times();
  return sum;
}

Runtime& Runtime::of_process() {
  static constinit beeline::detail::ProcessValue<Runtime> value;
  return value.get([] { return Runtime(); });
}

Runtime& Runtime::get() {
  Runtime& runtime = of_process();
  if (runtime.is_inherited())
    throw Error(Status::unavailable,
                "this process was forked after its parent had used Beeline's devices, whose threads and contexts a "
                "forked process does not have: fork before the first use");
  return runtime;
}

bool Runtime::may_ask_gpus() {
  const Runtime& runtime = of_process();
  return runtime.has_gpus() && !runtime.is_inherited();
}

bool Runtime::is_inherited() const { return fork_depth_ != beeline::detail::fork_depth(); }

Runtime::Runtime()
    : fork_depth_(beeline::detail::fork_depth()), config_(Config::from_environment()),
      gpus_(visible_gpus(&why_no_gpus_)), access_(gpus_.size() * gpus_.size()) {
  for (const beeline::Device& gpu : gpus_)
    gpu_states_.push_back(
        std::make_unique<DeviceState>(device_at(DeviceKind::gpu, gpu.index), gpu, config_.stream_deadline_ns));
}

DeviceState& Runtime::state_of(Device device) {
  const auto index = static_cast<std::size_t>(device.index());
  if (device.is_gpu()) return *gpu_states_[index];
  if (DeviceState* known = host_states_[index].load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(mutex_);
  if (DeviceState* known = host_states_[index].load(std::memory_order_acquire)) return *known;
  auto made = std::make_unique<DeviceState>(device, host_device(), config_.stream_deadline_ns);
  host_states_[index].store(made.get(), std::memory_order_release);
  return *made.release();
}

Runtime::Access Runtime::find_access(int from, int to) const {
  if (!config_.peer_access || !peer_access(from, to)) return Access::no;
  return gpu_memory::enable_peer(from, to) ? Access::yes : Access::no;
}

bool Runtime::reaches(Device from, Device to) {
  if (from == to) return true;
  if (from.is_gpu() != to.is_gpu()) return from.is_gpu();  // a GPU reaches pinned memory, a CPU no GPU's memory
  if (!from.is_gpu()) return config_.peer_access;
  std::atomic<Access>& known =
      access_[static_cast<std::size_t>(from.index()) * gpus_.size() + static_cast<std::size_t>(to.index())];
  if (known.load(std::memory_order_acquire) == Access::unknown)
    known.store(find_access(from.index(), to.index()), std::memory_order_release);
  return known.load(std::memory_order_relaxed) == Access::yes;
}

}  // namespace beeline::hpe::detail
