// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "beeline/core/wait_policy.hpp"
#include "core/long_wait.hpp"

namespace beeline::detail {

namespace {

thread_local WaitListener* listener = nullptr;
thread_local WaitInterrupt* interrupt = nullptr;

/// Yields between two works of a wait, and works between two yields of one that would sleep: an engine's work takes as
/// long as several yields.
constexpr unsigned period = 4;
/// If a thread's last two waits had work, its next wait works before each of this number of yields, and again after
/// work: more is likely. After one such wait it does not: the thread may take turns in waiting for other nodes, and for
/// a thread that needs this core.
constexpr std::uint32_t eager_yields = 64;
/// Time after work within which more work is likely. A thread that slept then would be late for it.
constexpr std::chrono::microseconds busy_for{50};

/// A thread's work during waits: when it works, and whether the work was useful.
struct WorkingWait {
  unsigned doublings = 0;  ///< of the yields before the first work: one more after each wait with useless work
  bool has_worked = false, had_work = false;
  bool is_long = false;           ///< it would sleep if there were no work
  unsigned useful = 0;            ///< waits in a row that had work; at most 2
  std::uint32_t eager_until = 0;  ///< Up to this number of yields of the wait, it works before each.
  unsigned idle = 0;              ///< calls without work since the last work
  std::chrono::steady_clock::time_point worked_at{};
};
thread_local WorkingWait working_wait;
thread_local bool may_work = true;

std::atomic<bool> any_work{false};
std::shared_mutex works_mutex;
std::vector<WaitWork*> works;

bool do_all_work() noexcept {
  const std::shared_lock lock(works_mutex, std::try_to_lock);
  if (!lock) return false;
  bool any = false;
  for (WaitWork* each : works) any = each->work() || any;
  if (any) working_wait.idle = 0, working_wait.worked_at = std::chrono::steady_clock::now();
  return any;
}

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

bool allow_wait_work(bool allowed) noexcept { return std::exchange(may_work, allowed); }

bool is_in_long_wait() noexcept { return working_wait.is_long; }

bool do_wait_work() noexcept {
  if (!may_work || !any_work.load(std::memory_order_relaxed)) return false;
  working_wait.is_long = true;
  if (do_all_work()) return true;
  if (std::chrono::steady_clock::now() - working_wait.worked_at >= busy_for) return false;
  if (++working_wait.idle % period == 0) ::sched_yield();
  return true;
}

bool do_wait_work(std::uint32_t yields) noexcept {
  constexpr unsigned most_doublings = 4;
  if (!may_work || !any_work.load(std::memory_order_relaxed)) return false;
  WorkingWait& wait = working_wait;
  wait.is_long = false;
  if (yields == 0) {
    const unsigned later = std::min(wait.doublings + 1, most_doublings);
    wait.doublings = wait.had_work ? 0 : wait.has_worked ? later : wait.doublings;
    wait.useful = wait.had_work ? std::min(wait.useful + 1, 2u) : wait.has_worked ? 0 : wait.useful;
    wait.eager_until = wait.useful == 2 ? eager_yields : 0;
    wait.has_worked = wait.had_work = false;
  }
  const std::uint32_t count = yields + 1;
  if (count > wait.eager_until && (count % period != 0 || count < period << wait.doublings)) return false;
  const bool any = do_all_work();
  wait.has_worked = true;
  wait.had_work = wait.had_work || any;
  if (any && wait.eager_until != 0) wait.eager_until = count + eager_yields;
  return any;
}

WaitInterrupt* interrupt_waits_by(WaitInterrupt* next) noexcept { return std::exchange(interrupt, next); }

bool is_interrupted(std::uint64_t now_ns) noexcept { return interrupt != nullptr && interrupt->ends_wait(now_ns); }

}  // namespace beeline::detail
