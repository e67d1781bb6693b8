// SPDX-License-Identifier: Apache-2.0
#include "control/trigger_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "beeline/core/error.hpp"
#include "control/command_check.hpp"

namespace beeline {

namespace {

/// A put and its signal as a single command: one message to another node, and one command of a device engine's block.
TriggeredCommands joined(const TriggeredCommands& what) {
  const Command& signal = what.commands[1];
  const bool is_put = has_shape_alone<VerbShape::to_peer>(what.commands[0].verb),
             is_signal = has_shape<VerbShape::word>(signal.verb) && signal.width == sizeof(std::uint64_t);
  if (what.count != 2 || !is_put || !is_signal || signal.peer != what.commands[0].peer) return what;
  TriggeredCommands one = what;
  one.commands[0].verb = Verb::put_signal;
  one.commands[0].remote_stride = signal.remote, one.commands[0].local_stride = signal.local;
  one.count = 1;
  return one;
}

}  // namespace

std::string text_of_armed(std::uint32_t tag, std::uint64_t count, std::uint64_t threshold, const Command& command) {
  return fmt::format("tag {} has count {} of threshold {} ({})", tag, count, threshold, text_of(command));
}

std::string text_of_unreached(std::uint32_t tag, std::uint64_t count, std::uint64_t threshold, const Command& command) {
  return fmt::format("trigger: tag {} has count {} of threshold {} by the deadline of an armed operation ({})", tag,
                     count, threshold, text_of(command));
}

TriggerTable::TriggerTable(const Size& size, const TriggerLists& here, const TriggerLists& there,
                           std::function<void(const std::string&)> fail)
    : size_(size), here_(here), there_(there), tags_(size.tags), entries_(size.entries + std::size_t{1}),
      fail_(std::move(fail)) {}

ArmedOperation TriggerTable::arm(const TriggeredCommands& operation) {
  const TriggeredCommands what = joined(operation);
  ArmedOperation armed;
  const auto insert_it = [&] {
    const std::uint32_t number = free_entry();
    Entry& entry = entries_[number];
    entry.tag = what.tag, entry.armed_ns = machine::clock_ns();
    entry.deadline_ns = what.deadline_ns != 0 ? what.deadline_ns : size_.deadline_ns;
    TriggerEntry& shown = changed_entry(number);
    shown.threshold = what.threshold, shown.next = 0, shown.then = what.then, shown.count = what.count;
    std::copy(what.commands.begin(), what.commands.end(), here_.commands[number].commands);
    insert(what.tag, number);
    armed = {number, entry.turns++};
    ++armed_;
    expect_deadline(deadline_of(number));
    fire_met(what.tag);
  };
  change(std::ref(insert_it));
  return armed;
}

std::uint32_t TriggerTable::free_entry() {
  if (free_.empty() && used_ < size_.entries) return ++used_;
  for (std::uint32_t number = 1; free_.empty() && number <= used_; ++number)
    if (here_.entries[number].over == entries_[number].turns) free_.push_back(number);
  require(!free_.empty(), Status::no_resource,
          fmt::format("all {} entries of the table hold operations that are armed or under way "
                      "(TriggerOptions::entries)",
                      size_.entries));
  const std::uint32_t number = free_.back();
  free_.pop_back();
  return number;
}

void TriggerTable::insert(std::uint32_t tag, std::uint32_t number) {
  TriggerTag& of = changed_tag(tag);
  const std::uint64_t threshold = here_.entries[number].threshold;
  tags_[tag].matched = std::max(tags_[tag].matched, threshold);
  std::uint32_t before = 0, behind = of.armed;
  if (behind != 0 && here_.entries[tags_[tag].last].threshold <= threshold) before = tags_[tag].last, behind = 0;
  for (; behind != 0 && here_.entries[behind].threshold <= threshold; behind = here_.entries[behind].next)
    before = behind;
  here_.entries[number].next = behind;
  if (behind == 0) tags_[tag].last = number;
  if (before != 0)
    changed_entry(before).next = number;
  else
    of.armed = number, of.threshold = threshold;
}

bool TriggerTable::take_out(std::uint32_t number) {
  const std::uint32_t tag = entries_[number].tag;
  if (here_.entries[number].threshold <= here_.tags[tag].count) return false;
  std::uint32_t before = 0, found = here_.tags[tag].armed;
  for (; found != 0 && found != number; found = here_.entries[found].next) before = found;
  if (found == 0) return false;
  const std::uint32_t behind = here_.entries[number].next;
  if (behind == 0) tags_[tag].last = before;
  if (before != 0)
    changed_entry(before).next = behind;
  else
    changed_tag(tag).armed = behind, changed_tag(tag).threshold = here_.entries[behind].threshold;
  ++changed_entry(number).over;
  --armed_;
  return true;
}

bool TriggerTable::cancel(ArmedOperation operation) {
  bool is_cancelled = false;
  change([&] {
    is_cancelled = holds(operation) && here_.entries[operation.entry].over == operation.turn &&
                   entries_[operation.entry].turns == operation.turn + 1 && take_out(operation.entry);
  });
  return is_cancelled;
}

void TriggerTable::close() {
  change([&] { drop_armed(); });
}

void TriggerTable::drop_armed() {
  for (std::uint32_t number = 1; number <= used_; ++number)
    if (here_.entries[number].over != entries_[number].turns) take_out(number);
}

const char* TriggerTable::trigger(std::uint64_t tag, std::uint64_t count) {
  if (const char* const refused = refuse_trigger(tag, count, size_.tags)) return refused;
  const auto add = [&] {
    changed_tag(static_cast<std::uint32_t>(tag)).count += count;
    note_count(static_cast<std::uint32_t>(tag), machine::clock_ns());
    fire_met(static_cast<std::uint32_t>(tag));
  };
  change(std::ref(add));
  return nullptr;
}

void TriggerTable::note_count(std::uint32_t tag, std::uint64_t now_ns) {
  tags_[tag].latest_ns = now_ns;
  if (here_.tags[tag].count > tags_[tag].matched) expect_deadline(now_ns + size_.deadline_ns);
}

bool TriggerTable::holds(ArmedOperation operation) const { return operation.entry != 0 && operation.entry <= used_; }

bool TriggerTable::has_ended(ArmedOperation operation) const {
  if (!holds(operation)) return true;
  const std::uint32_t number = operation.entry;
  return (is_here() ? here_.entries[number].over : read_there(there_.entries[number].over)) > operation.turn;
}

bool TriggerTable::is_over(ArmedOperation operation) {
  const std::lock_guard lock(mutex_);
  return has_ended(operation);
}

std::string TriggerTable::describe(ArmedOperation operation) {
  const std::lock_guard lock(mutex_);
  if (has_ended(operation)) return {};
  const std::uint32_t tag = entries_[operation.entry].tag;
  return text_of_armed(tag, count_of(tag), here_.entries[operation.entry].threshold,
                       here_.commands[operation.entry].commands[0]);
}

std::uint64_t TriggerTable::count_of(std::uint32_t tag) const {
  return is_here() ? here_.tags[tag].count : read_there(there_.tags[tag].count);
}

std::uint64_t TriggerTable::read(std::uint64_t TriggerTotals::*word) const {
  return is_here() ? here_.totals->*word : read_there(there_.totals->*word);
}

bool TriggerTable::is_idle() {
  const std::lock_guard lock(mutex_);
  if (read(&TriggerTotals::met) != 0) return false;
  const std::uint64_t over = read(&TriggerTotals::over);
  return over == read(&TriggerTotals::fired);
}

std::uint64_t TriggerTable::count(std::uint32_t tag) const {
  const std::lock_guard lock(mutex_);
  return count_of(tag);
}

std::uint32_t TriggerTable::armed() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(armed_ - read(&TriggerTotals::fired));
}

TriggerTag& TriggerTable::changed_tag(std::uint32_t tag) {
  note_tag(tag);
  return here_.tags[tag];
}

TriggerEntry& TriggerTable::changed_entry(std::uint32_t number) {
  note_entry(number);
  return here_.entries[number];
}

std::uint64_t TriggerTable::deadline_of(std::uint32_t number) const {
  const Entry& entry = entries_[number];
  return std::max(entry.armed_ns, tags_[entry.tag].latest_ns) + entry.deadline_ns;
}

std::string TriggerTable::find_unmatched(std::uint64_t now_ns, std::uint64_t& next_deadline_ns) const {
  next_deadline_ns = never;
  for (std::uint32_t tag = 0; tag < size_.tags; ++tag) {
    const TriggerTag& of = here_.tags[tag];
    std::uint32_t first = 0;  // the entry whose deadline ends first
    for (std::uint32_t number = of.armed; number != 0; number = here_.entries[number].next)
      if (here_.entries[number].threshold > of.count && (first == 0 || deadline_of(number) < deadline_of(first)))
        first = number;
    std::uint64_t deadline = first == 0 ? never : deadline_of(first);
    if (of.count > tags_[tag].matched) deadline = std::min(deadline, tags_[tag].latest_ns + size_.deadline_ns);
    next_deadline_ns = std::min(next_deadline_ns, deadline);
    if (deadline > now_ns) continue;
    if (first != 0)
      return text_of_unreached(tag, of.count, here_.entries[first].threshold, here_.commands[first].commands[0]);
    return fmt::format(
        "trigger: tag {} has count {}, and no operation is armed beyond threshold {} by the deadline of {} s", tag,
        of.count, tags_[tag].matched, static_cast<double>(size_.deadline_ns) * 1e-9);
  }
  return {};
}

}  // namespace beeline
