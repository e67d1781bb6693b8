// SPDX-License-Identifier: Apache-2.0
#include "transport/host_stream.hpp"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/device/group.hpp"
#include "beeline/device/signal.hpp"
#include "core/fork.hpp"
#include "core/thread.hpp"
#include "transport/checks.hpp"
#include "transport/gpu_reach.hpp"
#include "transport/host_workers.hpp"

namespace beeline {

namespace {

/// Each record has its own word: an event may be recorded on one stream while another stream has not reached an earlier
/// record.
class HostEvent final : public Event {
 public:
  using Reached = std::shared_ptr<std::atomic<std::uint64_t>>;  ///< 1: the stream has reached the record

  [[nodiscard]] bool done() const override { return latest()->load(std::memory_order_acquire) != 0; }
  [[nodiscard]] Reached latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
  }
  Reached record() {
    const std::lock_guard lock(mutex_);
    return latest_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  }

 private:
  mutable std::mutex mutex_;
  Reached latest_ = std::make_shared<std::atomic<std::uint64_t>>(1);  ///< an event without a record is done
};

class HostStream final : public Stream {
 public:
  HostStream(const Device& device, const Context& context, std::shared_ptr<GridState> grid_state, const GpuReach* reach)
      : device_(device), context_(context), grid_state_(std::move(grid_state)), reach_(reach) {}

  ~HostStream() override {
    if (!lane_.get_deleter().is_own()) return;
    {
      const std::lock_guard lock(lane_->mutex);
      closing_ = true;
      has_news_.store(true, std::memory_order_relaxed);
    }
    lane_->wake.notify_one();
    if (lane_->thread.joinable()) lane_->thread.join();
  }

  const Device& device() const override { return device_; }

  void copy(void* destination, const void* source, std::size_t bytes) override {
    if (!moves_anything(destination, source, bytes)) return;
    if (needs_gpu({destination, source}))
      enqueue_on_gpu([=](Stream& gpu) { gpu.copy(destination, source, bytes); });
    else
      enqueue([=] { std::memcpy(destination, source, bytes); });
  }
  void fill(void* destination, unsigned char value, std::size_t bytes) override {
    if (bytes == 0) return;
    if (needs_gpu({destination}))
      enqueue_on_gpu([=](Stream& gpu) { gpu.fill(destination, value, bytes); });
    else
      enqueue([=] { std::memset(destination, value, bytes); });
  }
  void write_signal(std::uint64_t* signal, std::uint64_t value) override {
    check_signal(signal);
    if (needs_gpu({signal}))
      enqueue_on_gpu([=](Stream& gpu) { gpu.write_signal(signal, value); });
    else
      enqueue([=, this] {
        detail::check_repetition(context_, signal, value, context_.own_world_rank);
        detail::store_signal(signal, value, Order::memory);
      });
  }
  void wait_signal(std::uint64_t* signal, std::uint64_t value) override {
    check_signal(signal);
    enqueue([this, signal, value] {
      const Status status = wait(Thread{}, context_, signal, Compare::greater_equal, value);
      if (status != Status::ok) throw Error(status, "a stream's wait for a signal");
    });
  }
  bool holds_signal_waits() override { return false; }
  void release_waits() override {}  // waits on a host rank poll the abort word themselves

  std::unique_ptr<Event> make_event() override { return std::make_unique<HostEvent>(); }
  void record(Event& event) override {
    event.teams = launched_teams_.teams();
    enqueue_always(
        [reached = dynamic_cast<HostEvent&>(event).record()] { reached->store(1, std::memory_order_release); });
  }
  void wait_event(Event& event) override {
    launched_teams_.hand_on(event.teams);
    enqueue([this, reached = dynamic_cast<HostEvent&>(event).latest()] {
      const Awaited awaited{Operation::stream_synchronize, no_peer, 1, 1};
      const Status status = poll_until(context_, awaited, Timeout::none(), [&](std::uint64_t& observed) {
        observed = reached->load(std::memory_order_acquire);
        return observed != 0;
      });
      if (status != Status::ok) throw Error(status, "a stream's wait for an event");
    });
  }

  bool drained() const noexcept override {
    const std::lock_guard lock(lane_->mutex);
    return pending_ == 0;
  }
  bool sleep_until_drained(std::int64_t longest_ns) override {
    std::unique_lock lock(lane_->mutex);
    lane_->drained.wait_for(lock, std::chrono::nanoseconds(longest_ns), [this] { return pending_ == 0; });
    return true;
  }
  bool idle() override {
    const std::lock_guard lock(lane_->mutex);
    if (pending_ != 0) return false;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return true;
  }
  void* native() const override { return nullptr; }
  void enqueue(std::function<void()> work) override { push({std::move(work), false}); }
  bool begin_here() override {
    const std::lock_guard lock(lane_->mutex);
    if (pending_ != 0) return false;
    here_ = std::this_thread::get_id();
    ++pending_;
    return true;
  }
  void end_here() override {
    const std::lock_guard lock(lane_->mutex);
    here_ = {};
    if (--pending_ == 0)
      lane_->drained.notify_all();
    else
      lane_->wake.notify_one();
  }
  HostWorkers* workers() override { return &lane_->workers; }
  GridState* grid_state() const override { return grid_state_.get(); }
  LaunchedTeams& launched_teams() override { return launched_teams_; }

 private:
  /// The threads of a stream, and the synchronization of its tasks.
  struct Lane {
    HostWorkers workers;
    std::mutex mutex;
    std::condition_variable wake, drained;
    std::thread thread;
  };
  struct Task {
    std::function<void()> work;
    bool always;  ///< whether it runs even after a failure
  };
  static constexpr std::uint32_t polls_before_sleep = 32;

  [[nodiscard]] bool needs_gpu(std::initializer_list<const void*> addresses) const {
    return reach_ != nullptr && reach_->needed(addresses);
  }

  /// Starts `work` on a GPU's stream once it is next in this stream, and holds this stream until the work is over.
  template <class Work>
  void enqueue_on_gpu(Work work) {
    enqueue([this, work] {
      Stream& gpu = reach_->stream();
      const std::unique_ptr<Event> over = gpu.make_event();
      work(gpu);
      gpu.record(*over);
      const Awaited awaited{Operation::stream_synchronize, no_peer, 0, 1};
      const Status status = poll_until(context_, awaited, Timeout::none(), [&](std::uint64_t& observed) {
        observed = over->done() ? 1 : 0;
        return observed != 0;
      });
      if (status != Status::ok) throw Error(status, "a GPU's part of a host rank's stream");
    });
  }

  void enqueue_always(std::function<void()> work) { push({std::move(work), true}); }

  void push(Task task) {
    {
      std::unique_lock lock(lane_->mutex);
      if (here_ == std::this_thread::get_id()) return run(task, lock);
      if (!lane_->thread.joinable()) start_thread();
      tasks_.push_back(std::move(task));
      ++pending_;
      has_news_.store(true, std::memory_order_relaxed);
      if (!asleep_) return;  // the thread looks for tasks before it sleeps
    }
    lane_->wake.notify_one();
  }

  /// A stream whose users do all its work themselves (`begin_here`) has no thread.
  void start_thread() {
    lane_->thread = detail::start_thread_for("a stream", [this] { serve(); });
  }

  /// Runs tasks in order, one thread at a time.
  void serve() {
    std::unique_lock lock(lane_->mutex);
    for (;;) {
      await_work(lock);
      if (tasks_.empty()) return;
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      run(task, lock);
      if (--pending_ == 0) lane_->drained.notify_all();
    }
  }

  /// Waits until there is work, or the stream closes. Waking a sleeping thread takes longer than yielding the core a
  /// few times: a program that waits for each of its launches enqueues the next one within microseconds.
  void await_work(std::unique_lock<std::mutex>& lock) {
    const Polling polling = context_.polling;
    if (tasks_.empty() && !closing_ && !polling.sleeps_at_once()) {
      has_news_.store(false, std::memory_order_relaxed);
      lock.unlock();
      for (std::uint32_t poll = 0; poll < polls_before_sleep && !has_news_.load(std::memory_order_relaxed); ++poll)
        std::this_thread::yield();
      lock.lock();
    }
    asleep_ = true;
    lane_->wake.wait(lock, [this] { return here_ == std::thread::id() && (closing_ || !tasks_.empty()); });
    asleep_ = false;
  }

  /// Runs a task. After a failure, skips tasks up to the next `idle()`, which reports the failure.
  void run(const Task& task, std::unique_lock<std::mutex>& lock) {
    if (failure_ && !task.always) return;
    lock.unlock();
    std::exception_ptr failure;
    try {
      task.work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
  }

  const Device device_;
  const Context& context_;
  const std::shared_ptr<GridState> grid_state_;
  LaunchedTeams launched_teams_;
  const GpuReach* const reach_;
  const detail::ProcessOwned<Lane> lane_{new Lane};
  std::deque<Task> tasks_;
  std::size_t pending_ = 0;
  bool closing_ = false;
  bool asleep_ = false;                ///< the stream's thread sleeps, and must be woken
  std::atomic<bool> has_news_{false};  ///< tasks were added; the stream's thread reads it without the lock
  std::thread::id here_;  ///< the thread that runs its own tasks itself, between `begin_here` and `end_here`
  std::exception_ptr failure_;
};

}  // namespace

std::unique_ptr<Stream> make_host_stream(const Device& device, const Context& context,
                                         std::shared_ptr<GridState> grid_state, const GpuReach* reach) {
  return std::make_unique<HostStream>(device, context, std::move(grid_state), reach);
}

std::unique_ptr<Stream> make_stream(const Device& device, const Context& context, std::shared_ptr<GridState> grid_state,
                                    StreamPriority priority) {
  return device.is_gpu() ? make_gpu_stream(device, context, std::move(grid_state), priority)
                         : make_host_stream(device, context, std::move(grid_state));
}

}  // namespace beeline
