// SPDX-License-Identifier: Apache-2.0
#include "gaspi/timed_operations.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace beeline::gaspi {

TimedOperations& timed_operations(const Process& process) { return *process.extension<TimedOperations>(); }

TimedOperations::~TimedOperations() { end_all(); }

void TimedOperations::close(Process&) { end_all(); }

void TimedOperations::end_all() {
  std::list<std::shared_ptr<Pending>> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(all_);
  }
  for (const std::shared_ptr<Pending>& pending : left) pending->thread.join();
}

void TimedOperations::Pending::run(const Operation& operation) {
  std::uint64_t value = 0;
  const beeline_status result = operation(value);
  const std::lock_guard lock(mutex);
  is_done = true, status = result, answer = value;
  if (result != BEELINE_OK) error = beeline_last_error();
  done.notify_all();
}

bool TimedOperations::Pending::await(std::uint64_t limit_ns) {
  std::unique_lock lock(mutex);
  return done.wait_for(lock, std::chrono::nanoseconds(limit_ns), [this] { return is_done; });
}

std::shared_ptr<TimedOperations::Pending> TimedOperations::find_or_begin(const Key& key, const Operation& operation) {
  const std::lock_guard lock(mutex_);
  // An operation whose call still waits is that of another thread, which makes the same call.
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const auto& each) { return !each->has_caller && each->key == key; });
  if (found != all_.end()) {
    (*found)->has_caller = true;
    return *found;
  }
  auto made = std::make_shared<Pending>();
  made->key = key;
  made->thread = std::thread([made = made.get(), operation] { made->run(operation); });
  all_.push_back(made);
  return made;
}

void TimedOperations::leave(const std::shared_ptr<Pending>& pending) {
  const std::lock_guard lock(mutex_);
  pending->has_caller = false;
}

void TimedOperations::remove(const std::shared_ptr<Pending>& pending) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(all_, pending);
  }
  pending->thread.join();
}

Result TimedOperations::perform(const Process& process, const Awaited& awaited, const Call& call,
                                const Operation& operation, std::uint64_t& answer) {
  std::shared_ptr<Pending> pending;
  // A call that fails leaves its operation behind: a later call must not take the answer for its own.
  const auto abandon = [&] {
    const std::lock_guard lock(mutex_);
    pending->key.clear(), pending->has_caller = false;
  };
  try {
    const Result result = wait_for(process, awaited, call.timeout_ms, [&](std::uint64_t slice_ns) -> beeline_status {
      if (beeline_team_failed(process.world_team()) != 0 && pending == nullptr) return BEELINE_ABORTED;
      if (pending == nullptr) pending = find_or_begin(call.key, operation);
      if (!pending->await(slice_ns)) return BEELINE_TIMEOUT;
      const beeline_status status = pending->status;
      if (status == BEELINE_OK) {
        answer = pending->answer;
      } else {
        const std::string error = pending->error;
        remove(std::exchange(pending, nullptr));
        const bool is_lost = status == BEELINE_ABORTED || status == BEELINE_PEER_DIED || status == BEELINE_DEADLINE;
        if (!is_lost) throw Failure(error);
        if (!call.repeats) throw Failure("ranks were lost meanwhile; whether it was done is not known: " + error);
      }
      return status;
    });
    if (pending != nullptr) result == Result::success ? remove(pending) : leave(pending);
    return result;
  } catch (const Failure&) {
    if (pending != nullptr) abandon();
    throw;
  }
}

}  // namespace beeline::gaspi
