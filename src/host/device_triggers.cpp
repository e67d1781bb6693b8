// SPDX-License-Identifier: Apache-2.0
#include "host/device_triggers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/world.hpp"

namespace beeline {

namespace {

/// Between two looks at the deadlines.
constexpr std::uint64_t trigger_look_ns = 20'000'000;

/// A put with the signal behind it is one command, which the block does at once.
void join(TriggeredCommands& what) {
  Command& put = what.commands[0];
  const Command& signal = what.commands[1];
  if (what.count != 2 || put.verb != Verb::put || signal.verb != Verb::store || signal.peer != put.peer) return;
  put.verb = Verb::put_signal;
  put.remote_stride = signal.remote, put.local_stride = signal.local;
  what.count = 1;
}

/// The block copies into symmetric memory by a put, which it need not hand to the host.
void put_for_copy(const Context& ctx, Command& command) {
  const std::uint64_t offset = command.remote - reinterpret_cast<std::uintptr_t>(ctx.range);
  const std::uint64_t peer = offset >> ctx.slot_shift;
  if (command.verb != Verb::copy || peer >= ctx.slots) return;
  command.verb = Verb::put;
  command.peer = static_cast<std::uint32_t>(peer);
  command.remote = offset & (SlotLayout{ctx.slot_shift}.slot_bytes() - 1);
}

}  // namespace

DeviceTriggers::DeviceTriggers(Team& team, DeviceEngine& engine, std::uint32_t queues, const TriggerTable::Size& size,
                               std::function<void(const std::string&)> fail)
    : engine_(engine), team_(team), size_(size), queues_(queues), fail_(std::move(fail)),
      there_(team, size, Heap::symmetric), here_(team, size, Heap::pinned), fired_(team, queues),
      entries_(size.entries + std::size_t{1}), tags_(size.tags) {}

void DeviceTriggers::Changed::add(std::size_t index) {
  first = std::min(first, index);
  end = std::max(end, index + 1);
}

template <class T>
void DeviceTriggers::Changed::write(World& world, const SymmetricArray<T>& to, const SymmetricArray<T>& from) const {
  if (end > first) world.copy(to.data() + first, from.data() + first, (end - first) * sizeof(T));
}

ServiceTriggers DeviceTriggers::show() {
  const std::lock_guard lock(mutex_);
  if (tags_changed_.end > 0 || entries_changed_.end > 0) {
    World& world = team_.world();
    tags_changed_.write(world, there_.tags, here_.tags);
    entries_changed_.write(world, there_.entries, here_.entries);
    entries_changed_.write(world, there_.commands, here_.commands);
    world.copy(there_.totals.data(), here_.totals.data(), sizeof(ServiceTotals));
  }
  tags_changed_ = entries_changed_ = {};
  is_here_ = false;
  return {there_.tags.data(),
          there_.entries.data(),
          there_.commands.data(),
          fired_.data(),
          there_.totals.data(),
          size_.tags,
          queues_};
}

void DeviceTriggers::change(const std::function<void()>& change) {
  engine_.between_leases([&] {
    const std::lock_guard lock(mutex_);
    read_table();
    change();
  });
}

void DeviceTriggers::read_table() {
  if (std::exchange(is_here_, true)) return;
  World& world = team_.world();
  world.copy(here_.tags.data(), there_.tags.data(), here_.tags.bytes());
  if (used_ > 0) world.copy(here_.entries.data() + 1, there_.entries.data() + 1, used_ * sizeof(ServiceEntry));
  world.copy(here_.totals.data(), there_.totals.data(), sizeof(ServiceTotals));
}

ArmedOperation DeviceTriggers::arm(const TriggeredCommands& what) {
  ArmedOperation armed;
  TriggeredCommands joined = what;
  for (Command& command : joined.commands) put_for_copy(team_.host_context(), command);
  join(joined);
  change([&] {
    const std::uint32_t number = free_entry();
    Entry& entry = entries_[number];
    entry.tag = what.tag, entry.armed_ns = machine::clock_ns();
    entry.deadline_ns = what.deadline_ns != 0 ? what.deadline_ns : size_.deadline_ns;
    ServiceEntry& shown = changed_entry(number);
    shown.threshold = what.threshold, shown.next = 0, shown.then = what.then, shown.count = joined.count;
    std::copy(joined.commands.begin(), joined.commands.end(), here_.commands.data()[number].commands);
    insert(what.tag, number);
    armed = {number, entry.turns++};
    ++armed_;
    fire_if_met(what.tag);
  });
  return armed;
}

std::uint32_t DeviceTriggers::free_entry() {
  if (free_.empty() && used_ < size_.entries) return ++used_;
  for (std::uint32_t number = 1; free_.empty() && number <= used_; ++number)
    if (here_.entries.data()[number].over == entries_[number].turns) free_.push_back(number);
  require(!free_.empty(), Status::no_resource,
          fmt::format("all {} entries of the table hold operations that are armed or under way "
                      "(TriggerOptions::entries)",
                      size_.entries));
  const std::uint32_t number = free_.back();
  free_.pop_back();
  return number;
}

void DeviceTriggers::insert(std::uint32_t tag, std::uint32_t number) {
  ServiceTag& of = changed_tag(tag);
  ServiceEntry* const entries = here_.entries.data();
  const std::uint64_t threshold = entries[number].threshold;
  tags_[tag].matched = std::max(tags_[tag].matched, threshold);
  std::uint32_t before = 0, behind = of.armed;
  if (behind != 0 && entries[tags_[tag].last].threshold <= threshold) before = tags_[tag].last, behind = 0;
  for (; behind != 0 && entries[behind].threshold <= threshold; behind = entries[behind].next) before = behind;
  entries[number].next = behind;
  if (behind == 0) tags_[tag].last = number;
  if (before != 0)
    changed_entry(before).next = number;
  else
    of.armed = number, of.threshold = threshold;
}

bool DeviceTriggers::take_out(std::uint32_t number) {
  const std::uint32_t tag = entries_[number].tag;
  ServiceEntry* const entries = here_.entries.data();
  if (entries[number].threshold <= here_.tags.data()[tag].count) return false;
  std::uint32_t before = 0, found = here_.tags.data()[tag].armed;
  for (; found != 0 && found != number; found = entries[found].next) before = found;
  if (found == 0) return false;
  const std::uint32_t behind = entries[number].next;
  if (behind == 0) tags_[tag].last = before;
  if (before != 0)
    changed_entry(before).next = behind;
  else
    changed_tag(tag).armed = behind, changed_tag(tag).threshold = entries[behind].threshold;
  ++changed_entry(number).over;
  --armed_;
  return true;
}

void DeviceTriggers::fire_if_met(std::uint32_t tag) {
  ServiceTag& of = changed_tag(tag);
  if (of.armed == 0 || of.threshold > of.count) return;
  engine_.want();
  std::uint64_t& met = here_.totals.data()->met;
  if (of.met != 0) return;
  of.met = met == 0 ? last_met : static_cast<std::uint32_t>(met);
  met = tag + 1;
}

bool DeviceTriggers::cancel(ArmedOperation operation) {
  bool is_cancelled = false;
  change([&] {
    if (operation.entry == 0 || operation.entry > used_) return;
    is_cancelled = here_.entries.data()[operation.entry].over == operation.turn &&
                   entries_[operation.entry].turns == operation.turn + 1 && take_out(operation.entry);
  });
  return is_cancelled;
}

void DeviceTriggers::close() {
  change([&] { drop_armed(); });
}

void DeviceTriggers::drop_armed() {
  for (std::uint32_t number = 1; number <= used_; ++number)
    if (here_.entries.data()[number].over != entries_[number].turns) static_cast<void>(take_out(number));
}

const char* DeviceTriggers::trigger(std::uint64_t tag, std::uint64_t count) {
  if (tag >= size_.tags) return "there is no such tag";
  change([&] {
    changed_tag(static_cast<std::uint32_t>(tag)).count += count;
    fire_if_met(static_cast<std::uint32_t>(tag));
  });
  return nullptr;
}

std::uint64_t DeviceTriggers::read(const std::uint64_t& here, const std::uint64_t& there) const {
  return is_here_ ? here : engine_.read(there);
}

bool DeviceTriggers::is_over(ArmedOperation operation) {
  const std::lock_guard lock(mutex_);
  if (operation.entry == 0 || operation.entry > used_) return true;
  return read(here_.entries.data()[operation.entry].over, there_.entries.data()[operation.entry].over) > operation.turn;
}

std::string DeviceTriggers::describe(ArmedOperation operation) {
  if (is_over(operation)) return {};
  const std::uint32_t tag = entries_[operation.entry].tag;
  const std::uint64_t counted = count(tag);
  const std::lock_guard lock(mutex_);
  return text_of_armed(tag, counted, here_.entries.data()[operation.entry].threshold,
                       here_.commands.data()[operation.entry].commands[0]);
}

bool DeviceTriggers::is_idle() {
  const std::lock_guard lock(mutex_);
  const ServiceTotals &here = *here_.totals.data(), &there = *there_.totals.data();
  if (read(here.met, there.met) != 0) return false;
  const std::uint64_t over = read(here.over, there.over);
  return over == read(here.fired, there.fired);
}

std::uint64_t DeviceTriggers::count(std::uint32_t tag) const {
  const std::lock_guard lock(mutex_);
  return read(here_.tags.data()[tag].count, there_.tags.data()[tag].count);
}

std::uint32_t DeviceTriggers::armed() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(armed_ - read(here_.totals.data()->fired, there_.totals.data()->fired));
}

ServiceTag& DeviceTriggers::changed_tag(std::uint32_t tag) {
  tags_changed_.add(tag);
  return here_.tags.data()[tag];
}

ServiceEntry& DeviceTriggers::changed_entry(std::uint32_t number) {
  entries_changed_.add(number);
  return here_.entries.data()[number];
}

void DeviceTriggers::look() {
  const std::uint64_t now = machine::clock_ns();
  if (now < next_look_ns_ || has_failed_) return;
  next_look_ns_ = now + trigger_look_ns;
  std::string unmatched;
  {
    const std::lock_guard lock(mutex_);
    read_table();
    note_counts(now);
    unmatched = find_unmatched(now);
    if (unmatched.empty()) return;
    drop_armed();
  }
  has_failed_ = true;
  fail_(unmatched);
}

void DeviceTriggers::note_counts(std::uint64_t now_ns) {
  for (std::uint32_t tag = 0; tag < size_.tags; ++tag) {
    const std::uint64_t count = here_.tags.data()[tag].count;
    if (std::exchange(tags_[tag].seen, count) != count) tags_[tag].latest_ns = now_ns;
  }
}

std::uint64_t DeviceTriggers::deadline_of(std::uint32_t number) const {
  const Entry& entry = entries_[number];
  return std::max(entry.armed_ns, tags_[entry.tag].latest_ns) + entry.deadline_ns;
}

/// What is, in words; empty: nothing.
std::string DeviceTriggers::find_unmatched(std::uint64_t now_ns) {
  for (std::uint32_t tag = 0; tag < size_.tags; ++tag) {
    const ServiceTag& of = here_.tags.data()[tag];
    const ServiceEntry* const entries = here_.entries.data();
    for (std::uint32_t number = of.armed; number != 0; number = entries[number].next)
      if (entries[number].threshold > of.count && deadline_of(number) <= now_ns)
        return text_of_unreached(tag, of.count, entries[number].threshold, here_.commands.data()[number].commands[0]);
    if (of.count > tags_[tag].matched && tags_[tag].latest_ns + size_.deadline_ns <= now_ns)
      return text_of_unarmed(tag, of.count, tags_[tag].matched, size_.deadline_ns);
  }
  return {};
}

}  // namespace beeline
