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

/// A thread's work during waits: when it works, and whether the work was useful.
struct WorkingWait {
  unsigned doublings = 0;  ///< of the yields before the first work: one more after each wait with useless work
  bool has_worked = false, had_work = false;
};
thread_local WorkingWait working_wait;

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

bool do_wait_work(std::uint32_t yields) noexcept {
  constexpr unsigned period = 4;  // an engine's work takes as long as several yields
  constexpr unsigned most_doublings = 4;
  if (!any_work.load(std::memory_order_relaxed)) return false;
  WorkingWait& wait = working_wait;
  if (yields == 0) {
    const unsigned later = std::min(wait.doublings + 1, most_doublings);
    wait = {wait.had_work ? 0 : wait.has_worked ? later : wait.doublings};
  }
  const std::uint32_t count = yields + 1;
  if (count % period != 0 || count < period << wait.doublings) return false;
  const bool any = do_wait_work();
  wait.has_worked = true;
  wait.had_work = wait.had_work || any;
  return any;
}

WaitInterrupt* interrupt_waits_by(WaitInterrupt* next) noexcept { return std::exchange(interrupt, next); }

bool is_interrupted(std::uint64_t now_ns) noexcept { return interrupt != nullptr && interrupt->ends_wait(now_ns); }

}  // namespace beeline::detail
