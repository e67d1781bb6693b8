// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "beeline/core/wait_policy.hpp"

namespace beeline::detail {

namespace {

thread_local WaitListener* listener = nullptr;
thread_local WaitInterrupt* interrupt = nullptr;

std::atomic<bool> any_work{false};
std::shared_mutex works_mutex;
std::vector<WaitWork*> works;

}  // namespace

WaitListener* listen_to_waits(WaitListener* next) noexcept { return std::exchange(listener, next); }

void tell_wait() noexcept {
  if (listener != nullptr) listener->on_wait();
}

void add_wait_work(WaitWork& work) {
  const std::lock_guard lock(works_mutex);
  works.push_back(&work);
  any_work = true;
}

void remove_wait_work(WaitWork& work) {
  const std::lock_guard lock(works_mutex);
  works.erase(std::find(works.begin(), works.end(), &work));
  any_work = !works.empty();
}

bool do_wait_work() noexcept {
  if (!any_work.load(std::memory_order_relaxed)) return false;
  const std::shared_lock lock(works_mutex, std::try_to_lock);
  if (!lock) return false;
  bool any = false;
  for (WaitWork* each : works) any = each->work() || any;
  return any;
}

WaitInterrupt* interrupt_waits_by(WaitInterrupt* next) noexcept { return std::exchange(interrupt, next); }

bool is_interrupted(std::uint64_t now_ns) noexcept { return interrupt != nullptr && interrupt->ends_wait(now_ns); }

}  // namespace beeline::detail
