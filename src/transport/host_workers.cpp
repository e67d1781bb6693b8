// SPDX-License-Identifier: Apache-2.0
#include "transport/host_workers.hpp"

#include <fmt/format.h>

#include <system_error>

#include "beeline/core/error.hpp"

namespace beeline {

HostWorkers::~HostWorkers() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HostWorkers::run(unsigned count, const std::function<void(unsigned)>& task) {
  if (count == 1) return task(0);
  if (threads_.size() + 1 < count) provide(count - 1);
  std::unique_lock lock(mutex_);
  task_ = &task;
  count_ = unfinished_ = count, next_ = 0;
  work(lock);
  over_.wait(lock, [this] { return unfinished_ == 0; });
}

void HostWorkers::provide(unsigned threads) {
  threads_.reserve(threads);
  try {
    while (threads_.size() < threads) threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error& error) {
    throw Error(Status::no_resource,
                fmt::format("a grid needs {} threads at once, and the system gives no more than {}: {}", threads + 1,
                            threads_.size() + 1, error.what()));
  }
}

void HostWorkers::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    waking_ = false;
    work(lock);
    if (closing_) return;
    wake_.wait(lock);
  }
}

void HostWorkers::work(std::unique_lock<std::mutex>& lock) {
  while (next_ < count_) {
    const unsigned mine = next_++;
    const bool wakes = next_ < count_ && !waking_;
    if (wakes) waking_ = true;
    lock.unlock();
    if (wakes) wake_.notify_one();
    (*task_)(mine);
    lock.lock();
    if (--unfinished_ == 0) over_.notify_one();
  }
}

}  // namespace beeline
