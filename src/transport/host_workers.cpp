// SPDX-License-Identifier: Apache-2.0
#include "transport/host_workers.hpp"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/device/impl/machine.hpp"
#include "core/thread.hpp"

namespace beeline {

HostWorkers::~HostWorkers() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  if (!timekeeper_.joinable()) return;
  set_timer(1);
  timekeeper_.join();
}

void HostWorkers::run(unsigned count, unsigned at_once, const std::function<void(unsigned)>& task) {
  if (count == 1) return task(0);
  if (threads_.size() + 1 < count) provide(count - 1);
  std::unique_lock lock(mutex_);
  if (at_once < count && !std::exchange(is_timed_, true)) set_timer(wake_all_ns_);
  task_ = &task;
  count_ = unfinished_ = count, at_once_ = at_once;
  unbegun_.store(count, std::memory_order_relaxed);
  work(lock);
  while (!over_.wait_for(lock, std::chrono::milliseconds(50), [this] { return unfinished_ == 0; })) {
    lock.unlock();
    static_cast<void>(detail::is_interrupted(machine::clock_ns()));  // an interrupt aborts the grid's team
    lock.lock();
  }
}

void HostWorkers::provide(unsigned threads) {
  threads_.reserve(threads);
  try {
    if (!timekeeper_.joinable()) {
      timer_ = FileDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
      require(static_cast<bool>(timer_), Status::no_resource,
              fmt::format("a grid's timer: {}", std::generic_category().message(errno)));
      timekeeper_ = std::thread([this] { keep_time(); });
    }
    while (threads_.size() < threads) threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error& error) {
    detail::refuse_thread(
        fmt::format("a grid that needs {} at once, of which there are {}", threads + 1, threads_.size() + 1), error);
  }
}

void HostWorkers::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return waking_ || closing_; });
    if (closing_) return;
    waking_ = false;
    work(lock);
  }
}

void HostWorkers::work(std::unique_lock<std::mutex>& lock) {
  while (const unsigned left = unbegun_.load(std::memory_order_relaxed)) {
    const unsigned mine = count_ - left;
    unbegun_.store(left - 1, std::memory_order_relaxed);
    if (mine + 1 < at_once_) wake_another();
    lock.unlock();
    detail::WaitListener* const outer = detail::listen_to_waits(this);
    (*task_)(mine);
    detail::listen_to_waits(outer);
    lock.lock();
    if (--unfinished_ == 0) over_.notify_one();
  }
}

void HostWorkers::wake_another() {
  if (waking_ || unbegun_.load(std::memory_order_relaxed) == 0) return;
  waking_ = true;
  wake_.notify_one();
}

void HostWorkers::on_wait() noexcept {
  if (unbegun_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(mutex_);
  wake_another();
}

void HostWorkers::keep_time() {
  for (std::uint64_t expired = 0; ::read(timer_.get(), &expired, sizeof expired) == sizeof expired;) {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    is_timed_ = false;
    at_once_ = count_;
    wake_another();
  }
}

void HostWorkers::set_timer(long ns) const {
  const itimerspec after{.it_interval = {}, .it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000}};
  ::timerfd_settime(timer_.get(), 0, &after, nullptr);
}

}  // namespace beeline
