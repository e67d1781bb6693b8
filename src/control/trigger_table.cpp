// SPDX-License-Identifier: Apache-2.0
#include "control/trigger_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/device/put_get.hpp"
#include "control/command_check.hpp"

namespace beeline {

std::string text_of_armed(std::uint32_t tag, std::uint64_t count, std::uint64_t threshold, const Command& command) {
  return fmt::format("tag {} has count {} of threshold {} ({})", tag, count, threshold, text_of(command));
}

std::string text_of_unreached(std::uint32_t tag, std::uint64_t count, std::uint64_t threshold, const Command& command) {
  return fmt::format("trigger: tag {} has count {} of threshold {} by the deadline of an armed operation ({})", tag,
                     count, threshold, text_of(command));
}

std::string text_of_unarmed(std::uint32_t tag, std::uint64_t count, std::uint64_t matched, std::uint64_t deadline_ns) {
  return fmt::format(
      "trigger: tag {} has count {}, and no operation is armed beyond threshold {} by the deadline of {} s", tag, count,
      matched, static_cast<double>(deadline_ns) * 1e-9);
}

TriggerTable::TriggerTable(const Size& size, std::vector<CommandRing*> rings,
                           std::function<void(const std::string&)> fail)
    : size_(size), fail_(std::move(fail)), tags_(size.tags), queues_(rings.size()) {
  for (std::size_t i = 0; i < rings.size(); ++i) queues_[i].ring = rings[i];
}

ArmedOperation TriggerTable::arm(const TriggeredCommands& what) {
  const std::uint64_t now = machine::clock_ns();
  std::unique_lock lock(mutex_);
  if (free_.empty()) {
    require(entries_.size() < size_.entries, Status::no_resource,
            fmt::format("all {} entries of the table hold operations that are armed or under way "
                        "(TriggerOptions::entries)",
                        size_.entries));
    free_.push_back(static_cast<std::uint32_t>(entries_.size()));
    entries_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Entry& entry = entries_[index];
  entry.what = what, entry.state = State::armed, entry.armed_ns = now;
  ++armed_;
  Tag& tag = tags_[what.tag];
  tag.matched = std::max(tag.matched, what.threshold);
  const auto behind = std::upper_bound(
      tag.armed.begin(), tag.armed.end(), what.threshold,
      [this](std::uint64_t threshold, std::uint32_t other) { return threshold < entries_[other].what.threshold; });
  tag.armed.insert(behind, index);
  const ArmedOperation armed{index, entry.turn};
  const std::uint64_t deadline = deadline_of(entry);
  if (deadline < next_check_ns_.load(std::memory_order_relaxed))
    next_check_ns_.store(deadline, std::memory_order_relaxed);
  fire(what.tag);
  const bool has_fired = entry.state == State::fired;
  lock.unlock();
  if (has_fired) wake(what.tag);
  return armed;
}

bool TriggerTable::cancel(ArmedOperation operation) {
  const std::lock_guard lock(mutex_);
  if (!holds(operation, State::armed)) return false;
  std::vector<std::uint32_t>& armed = tags_[entries_[operation.entry].what.tag].armed;
  armed.erase(std::find(armed.begin(), armed.end(), operation.entry));
  --armed_;
  release(operation.entry);
  return true;
}

void TriggerTable::close() {
  const std::lock_guard lock(mutex_);
  for (Tag& tag : tags_) {
    for (const std::uint32_t entry : tag.armed) release(entry);
    tag.armed.clear();
  }
  armed_ = 0;
}

bool TriggerTable::is_over(ArmedOperation operation) {
  const std::lock_guard lock(mutex_);
  return !holds(operation, State::armed) && !holds(operation, State::fired);
}

std::string TriggerTable::describe(ArmedOperation operation) {
  const std::lock_guard lock(mutex_);
  if (!holds(operation, State::armed) && !holds(operation, State::fired)) return {};
  const TriggeredCommands& what = entries_[operation.entry].what;
  return text_of_armed(what.tag, tags_[what.tag].count, what.threshold, what.commands[0]);
}

bool TriggerTable::is_idle() {
  const std::lock_guard lock(mutex_);
  return under_way_ == 0;
}

std::uint64_t TriggerTable::count(std::uint32_t tag) const {
  const std::lock_guard lock(mutex_);
  return tags_[tag].count;
}

std::uint32_t TriggerTable::armed() {
  const std::lock_guard lock(mutex_);
  return armed_;
}

const char* TriggerTable::trigger(std::uint64_t tag, std::uint64_t count) {
  if (tag >= size_.tags) return "there is no such tag";
  if (count == 0) return "it counts nothing";
  {
    const std::lock_guard lock(mutex_);
    add(static_cast<std::uint32_t>(tag), count, machine::clock_ns());
  }
  wake(static_cast<std::uint32_t>(tag));
  return nullptr;
}

bool TriggerTable::take(std::uint32_t queue, Command& command, FiredCommand& fired) {
  if (!has_fired(queue)) return false;
  const std::lock_guard lock(mutex_);
  Queue& from = queues_[queue];
  const Fired next = from.fired.front();
  from.fired.pop_front();
  from.waiting.store(from.fired.size(), std::memory_order_release);
  const TriggeredCommands& what = entries_[next.entry].what;
  command = what.commands[next.command];
  fired = {next.entry, next.command + 1 == what.count};
  return true;
}

void TriggerTable::finish(const FiredCommand& last, bool is_done) {
  std::unique_lock lock(mutex_);
  const std::uint32_t then = entries_[last.entry].what.then;
  release(last.entry);
  --under_way_;
  if (then == no_chain || !is_done) return;
  add(then, 1, machine::clock_ns());
  lock.unlock();
  wake(then);
}

void TriggerTable::check_deadlines(std::uint64_t now_ns) {
  if (now_ns < next_check_ns_.load(std::memory_order_relaxed)) return;
  std::string unmatched;
  {
    const std::lock_guard lock(mutex_);
    unmatched = find_unmatched(now_ns);
  }
  if (unmatched.empty()) return;
  close();
  fail_(unmatched);
}

bool TriggerTable::holds(ArmedOperation operation, State state) const {
  return operation.entry < entries_.size() && entries_[operation.entry].turn == operation.turn &&
         entries_[operation.entry].state == state;
}

void TriggerTable::add(std::uint32_t tag, std::uint64_t count, std::uint64_t now_ns) {
  Tag& to = tags_[tag];
  to.count += count;
  to.latest_ns = now_ns;
  if (to.count > to.matched && now_ns + size_.deadline_ns < next_check_ns_.load(std::memory_order_relaxed))
    next_check_ns_.store(now_ns + size_.deadline_ns, std::memory_order_relaxed);
  fire(tag);
}

void TriggerTable::fire(std::uint32_t tag) {
  Tag& of = tags_[tag];
  Queue& queue = queues_[tag % queues_.size()];
  auto met = of.armed.begin();
  for (; met != of.armed.end() && entries_[*met].what.threshold <= of.count; ++met) {
    Entry& entry = entries_[*met];
    entry.state = State::fired;
    --armed_, ++under_way_;
    for (std::uint32_t command = 0; command < entry.what.count; ++command) queue.fired.push_back({*met, command});
  }
  of.armed.erase(of.armed.begin(), met);
  queue.waiting.store(queue.fired.size(), std::memory_order_release);
}

void TriggerTable::release(std::uint32_t entry) {
  entries_[entry].state = State::free;
  ++entries_[entry].turn;
  free_.push_back(entry);
}

std::uint64_t TriggerTable::deadline_of(const Entry& entry) const {
  const std::uint64_t since = std::max(entry.armed_ns, tags_[entry.what.tag].latest_ns);
  return since + (entry.what.deadline_ns != 0 ? entry.what.deadline_ns : size_.deadline_ns);
}

/// What is, in words; empty: nothing, and the next look is put off until something may be.
std::string TriggerTable::find_unmatched(std::uint64_t now_ns) {
  std::uint64_t next = never;
  for (std::uint32_t index = 0; index < tags_.size(); ++index) {
    const Tag& tag = tags_[index];
    const Entry* first = nullptr;  // whose deadline ends first
    for (const std::uint32_t entry : tag.armed)
      if (first == nullptr || deadline_of(entries_[entry]) < deadline_of(*first)) first = &entries_[entry];
    std::uint64_t deadline = first == nullptr ? never : deadline_of(*first);
    if (tag.count > tag.matched) deadline = std::min(deadline, tag.latest_ns + size_.deadline_ns);
    if (deadline <= now_ns) {
      next_check_ns_.store(never, std::memory_order_relaxed);  // it has failed
      return describe(index, first);
    }
    next = std::min(next, deadline);
  }
  next_check_ns_.store(next, std::memory_order_relaxed);
  return {};
}

std::string TriggerTable::describe(std::uint32_t tag, const Entry* entry) const {
  const Tag& of = tags_[tag];
  return entry == nullptr ? text_of_unarmed(tag, of.count, of.matched, size_.deadline_ns)
                          : text_of_unreached(tag, of.count, entry->what.threshold, entry->what.commands[0]);
}

void TriggerTable::wake(std::uint32_t tag) const {
  std::uint64_t& word = queues_[tag % queues_.size()].ring->asleep.value;
  const std::uint64_t asleep = detail::SystemAtomic<std::uint64_t>(word).load(std::memory_order_relaxed);
  if (asleep != 0) detail::wake_engine(asleep);
}

}  // namespace beeline
