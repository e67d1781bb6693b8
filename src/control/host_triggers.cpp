// SPDX-License-Identifier: Apache-2.0
#include "control/host_triggers.hpp"

#include <utility>

namespace beeline {

HostTriggers::HostTriggers(const Size& size, std::uint32_t queues, std::function<void(std::uint32_t queue)> wake,
                           std::function<void(const std::string&)> fail)
    : HostTriggerMemory(size, queues), TriggerTable(size, lists(), lists(), std::move(fail)), wake_(std::move(wake)),
      waiting_(queues) {}

void HostTriggers::change(const std::function<void()>& change) {
  std::unique_lock lock(mutex_);
  woken_ = no_queue;
  change();
  const std::uint32_t queue = woken_;
  lock.unlock();
  if (queue != no_queue) wake_(queue);
}

void HostTriggers::fire_met(std::uint32_t tag) {
  here_.fire(tag, here_.tags[tag].count);
  note_fired(tag);
}

void HostTriggers::note_fired(std::uint32_t tag) {
  const std::uint32_t queue = tag % here_.queues;
  const bool has_fired = here_.fired[queue].first != 0;
  waiting_[queue].store(has_fired, std::memory_order_release);
  if (has_fired) woken_ = queue;
}

void HostTriggers::expect_deadline(std::uint64_t deadline_ns) {
  if (deadline_ns < next_check_ns_.load(std::memory_order_relaxed))
    next_check_ns_.store(deadline_ns, std::memory_order_relaxed);
}

bool HostTriggers::take(std::uint32_t queue, Command& command, FiredCommand& fired) {
  if (!has_fired(queue)) return false;
  const std::lock_guard lock(mutex_);
  const FiredOperations& all = here_.fired[queue];
  command = here_.next_command(all);
  fired.entry = all.first;
  fired.is_last = here_.advance(queue);
  waiting_[queue].store(all.first != 0, std::memory_order_release);
  return true;
}

void HostTriggers::finish(const FiredCommand& last, bool is_done) {
  const auto finish_it = [&] {
    const std::uint32_t then = here_.entries[last.entry].then;
    here_.finish(last.entry, is_done);
    if (then == no_chain || !is_done) return;
    note_count(then, machine::clock_ns());
    note_fired(then);
  };
  change(std::ref(finish_it));
}

void HostTriggers::check_deadlines(std::uint64_t now_ns) {
  if (now_ns < next_check_ns_.load(std::memory_order_relaxed)) return;
  std::string unmatched;
  {
    const std::lock_guard lock(mutex_);
    std::uint64_t next = never;
    unmatched = find_unmatched(now_ns, next);
    next_check_ns_.store(unmatched.empty() ? next : never, std::memory_order_relaxed);
    if (unmatched.empty()) return;
    drop_armed();
  }
  fail(unmatched);
}

}  // namespace beeline
