// SPDX-License-Identifier: Apache-2.0
#include "host/device_triggers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "beeline/host/world.hpp"

namespace beeline {

namespace {

/// Time between two checks of the deadlines.
constexpr std::uint64_t trigger_look_ns = 20'000'000;

/// Turns a copy into symmetric memory into a put, which the block carries out without the host.
void put_for_copy(const Context& ctx, Command& command) {
  const std::uint64_t offset = command.remote - reinterpret_cast<std::uintptr_t>(ctx.range);
  const std::uint64_t peer = offset >> ctx.slot_shift;
  if (!has_shape<VerbShape::between>(command.verb) || peer >= ctx.slots) return;
  command.verb = Verb::put;
  command.peer = static_cast<std::uint32_t>(peer);
  command.remote = offset & (SlotLayout{ctx.slot_shift}.slot_bytes() - 1);
}

}  // namespace

DeviceTriggers::DeviceTriggers(Team& team, DeviceEngine& engine, std::uint32_t queues, const Size& size,
                               std::function<void(const std::string&)> fail)
    : DeviceTriggerMemory(team, size, queues), TriggerTable(size, lists(here), lists(there), std::move(fail)),
      engine_(engine), team_(team), seen_(size.tags) {}

void DeviceTriggers::Changed::add(std::size_t index) {
  first = std::min(first, index);
  end = std::max(end, index + 1);
}

template <class T>
void DeviceTriggers::Changed::write(World& world, const SymmetricArray<T>& to, const SymmetricArray<T>& from) const {
  if (end > first) world.copy(to.data() + first, from.data() + first, (end - first) * sizeof(T));
}

TriggerLists DeviceTriggers::show() {
  const std::lock_guard lock(mutex_);
  if (tags_changed_.end > 0 || entries_changed_.end > 0) {
    World& world = team_.world();
    tags_changed_.write(world, there.tags, here.tags);
    entries_changed_.write(world, there.entries, here.entries);
    entries_changed_.write(world, there.commands, here.commands);
    world.copy(there.totals.data(), here.totals.data(), sizeof(TriggerTotals));
  }
  tags_changed_ = entries_changed_ = {};
  is_here_ = false;
  return there_;
}

void DeviceTriggers::change(const std::function<void()>& change) {
  engine_.between_leases([&] {
    const std::lock_guard lock(mutex_);
    read_lists();
    change();
  });
}

void DeviceTriggers::read_lists() {
  if (std::exchange(is_here_, true)) return;
  World& world = team_.world();
  world.copy(here.tags.data(), there.tags.data(), here.tags.bytes());
  if (used_ > 0) world.copy(here.entries.data() + 1, there.entries.data() + 1, used_ * sizeof(TriggerEntry));
  world.copy(here.totals.data(), there.totals.data(), sizeof(TriggerTotals));
}

ArmedOperation DeviceTriggers::arm(const TriggeredCommands& what) {
  TriggeredCommands changed = what;
  for (Command& command : changed.commands) put_for_copy(team_.host_context(), command);
  return TriggerTable::arm(changed);
}

void DeviceTriggers::fire_met(std::uint32_t tag) {
  TriggerTag& of = here_.tags[tag];
  note_tag(tag);
  if (of.armed == 0 || of.threshold > of.count) return;
  engine_.want();
  std::uint64_t& met = here_.totals->met;
  if (of.met != 0) return;
  of.met = met == 0 ? last_met : static_cast<std::uint32_t>(met);
  met = tag + 1;
}

void DeviceTriggers::look() {
  const std::uint64_t now = machine::clock_ns();
  if (now < next_look_ns_ || has_failed_) return;
  next_look_ns_ = now + trigger_look_ns;
  std::string unmatched;
  {
    const std::lock_guard lock(mutex_);
    read_lists();
    note_counts(now);
    std::uint64_t next = never;
    unmatched = find_unmatched(now, next);
    if (unmatched.empty()) return;
    drop_armed();
  }
  has_failed_ = true;
  fail(unmatched);
}

/// Records the time of changed counts, since the block counts without a clock.
void DeviceTriggers::note_counts(std::uint64_t now_ns) {
  for (std::uint32_t tag = 0; tag < size_.tags; ++tag)
    if (std::exchange(seen_[tag], here_.tags[tag].count) != here_.tags[tag].count) note_count(tag, now_ns);
}

}  // namespace beeline
