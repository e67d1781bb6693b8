// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_users.hpp"

#include <fmt/format.h>
#include <sched.h>

#include "beeline/core/error.hpp"
#include "beeline/core/wait_policy.hpp"
#include "runtime/deadline.hpp"

namespace beeline {

bool MemoryUsers::try_hold() {
  ++held_;
  if (ending_ == 0) return true;
  --held_;
  return false;
}

MemoryUsers::NoHolds::NoHolds(MemoryUsers& users, std::int64_t deadline_ns) : users_(users) {
  const detail::Deadline deadline(deadline_ns);
  ++users.ending_;
  for (;;) {
    const bool is_late = deadline.passed();  // read first, so that a release before the deadline counts
    if (users.held_ == 0) return;
    if (is_late) {
      --users.ending_;
      throw Error(Status::deadline,
                  fmt::format("memory is not unmapped: a put or get of another node has used it for {} s",
                              deadline.total_seconds()));
    }
    if (!detail::do_wait_work()) ::sched_yield();
  }
}

MemoryUsers::Unmapping::Unmapping(MemoryUsers& users, const std::byte* start, std::int64_t deadline_ns)
    : users_(users), start_(start), lock_(users.watchers_mutex_) {
  std::size_t told = 0;
  try {
    for (UnmapWatcher* watcher : users.watchers_) {
      ++told;
      watcher->before_unmap(start, deadline_ns);
    }
  } catch (...) {
    end(told);
    throw;
  }
}

void MemoryUsers::Unmapping::end(std::size_t told) noexcept {
  for (std::size_t i = 0; i < told; ++i) users_.watchers_[i]->after_unmap(start_);
}

void MemoryUsers::watch(UnmapWatcher& watcher) {
  const std::lock_guard lock(watchers_mutex_);
  watchers_.push_back(&watcher);
}

void MemoryUsers::unwatch(UnmapWatcher& watcher) {
  const std::lock_guard lock(watchers_mutex_);
  std::erase(watchers_, &watcher);
}

void MemoryUsers::lock() {
  ++unmapping_;
  mutex_.lock();
  for (MemoryUser* user : users_) user->mutex_.lock();
}

void MemoryUsers::unlock() {
  for (MemoryUser* user : users_) user->mutex_.unlock();
  --unmapping_;
  mutex_.unlock();
}

MemoryUser::MemoryUser(MemoryUsers& users) : users_(users) {
  const std::lock_guard lock(users_.mutex_);
  users_.users_.push_back(this);
}

MemoryUser::~MemoryUser() {
  const std::lock_guard lock(users_.mutex_);
  std::erase(users_.users_, this);
}

void MemoryUser::lock() {
  while (users_.unmapping_.load(std::memory_order_relaxed) > 0) const std::lock_guard wait(users_.mutex_);
  mutex_.lock();
}

}  // namespace beeline
