// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The lists of a table of triggered operations (control/trigger_table.hpp): the counts of tags, their armed
/// operations, and fired operations. They are in host memory, where they are used under the table's lock, or in memory
/// of a device, where one thread of the service block uses them.
///
/// Entries are numbered from 1; 0 means no entry.

#include <cstdint>

#include "beeline/control/armed_operation.hpp"
#include "beeline/core/command.hpp"
#include "beeline/device/impl/verbs.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline {

/// A tag, and the list of its armed entries, sorted by threshold.
struct TriggerTag {
  std::uint64_t count;
  std::uint64_t threshold;  ///< of its first armed entry
  std::uint32_t armed;      ///< number of its first armed entry
  std::uint32_t met;        ///< next in the list of met tags; `last_met` at its end; 0: not in the list
};
inline constexpr std::uint32_t last_met = ~std::uint32_t{0};

/// A triggered operation.
struct TriggerEntry {
  std::uint64_t threshold;
  std::uint64_t over;   ///< operations that the entry has held and that are over
  std::uint32_t next;   ///< next entry: of its tag while armed, of its queue once fired
  std::uint32_t then;   ///< the tag to trigger on completion, from 0; or no_chain
  std::uint32_t count;  ///< number of its commands
};

/// The commands of an entry.
struct EntryCommands {
  Command commands[2];
};

/// The fired operations that a queue carries out, in this order.
struct FiredOperations {
  std::uint32_t first, last;
  std::uint32_t command;  ///< index of the next command of the first operation
};

/// Words that the host reads during a lease.
struct TriggerTotals {
  std::uint64_t fired, over;  ///< counts of operations
  std::uint64_t met;          ///< first in the list of tags that the host has found met
};

/// Pointers to the lists, which one thread at a time uses.
struct TriggerLists {
  TriggerTag* tags = nullptr;         ///< [tag_count]; nullptr: the queues take no triggers
  TriggerEntry* entries = nullptr;    ///< [entries + 1]
  EntryCommands* commands = nullptr;  ///< [entries + 1]
  FiredOperations* fired = nullptr;   ///< [queues]
  TriggerTotals* totals = nullptr;
  std::uint32_t tag_count = 0, queues = 1;

  [[nodiscard]] BEELINE_HOST_DEVICE bool takes(const Command& command) const {
    return has_shape<VerbShape::count>(command.verb) && command.remote < tag_count && command.local != 0;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE FiredOperations fired_in(std::uint32_t queue) const {
    return tags == nullptr ? FiredOperations{} : fired[queue];
  }
  /// The next command of a queue's fired operations.
  [[nodiscard]] BEELINE_HOST_DEVICE const Command& next_command(const FiredOperations& of) const {
    return commands[of.first].commands[of.command];
  }

  /// Adds to the count of a tag. Returns the first operation that fires; 0 if none does.
  BEELINE_HOST_DEVICE std::uint32_t add(std::uint32_t tag, std::uint64_t count) const {
    TriggerTag& of = tags[tag];
    const std::uint64_t sum = of.count + count;
    const std::uint32_t first = of.armed;
    const bool is_met = first != 0 && of.threshold <= sum;
    note(of.count, sum);
    if (is_met) fire(tag, sum);
    return is_met ? first : 0;
  }

  /// Moves the tag's operations whose thresholds the count has reached to the tag's queue.
  BEELINE_HOST_DEVICE void fire(std::uint32_t tag, std::uint64_t count) const {
    TriggerTag& of = tags[tag];
    FiredOperations& all = fired[tag % queues];
    std::uint32_t number = of.armed;
    std::uint64_t fires = 0, threshold = 0;
    for (; number != 0; ++fires) {
      TriggerEntry& entry = entries[number];
      threshold = entry.threshold;
      if (threshold > count) break;
      const std::uint32_t behind = entry.next;
      entry.next = 0;
      (all.first == 0 ? all.first : entries[all.last].next) = number;
      all.last = number;
      number = behind;
    }
    of.armed = number;
    of.threshold = threshold;
    note(totals->fired, totals->fired + fires);
  }

  /// Called at the beginning of a lease: fires the tags that the host has found met.
  BEELINE_HOST_DEVICE void fire_met() const {
    auto met = static_cast<std::uint32_t>(totals->met);
    while (met != 0 && met != last_met) {
      TriggerTag& of = tags[met - 1];
      fire(met - 1, of.count);
      met = of.met;
      of.met = 0;
    }
    if (totals->met == 0) return;
    if constexpr (detail::executor == DeviceKind::gpu) machine::fence_acquire_release();
    publish(totals->met, 0);
  }

  /// Moves past the next command of the queue's first operation. Returns whether it was the operation's last; the
  /// queue's next operation is then the first.
  BEELINE_HOST_DEVICE bool advance(std::uint32_t queue) const {
    FiredOperations& all = fired[queue];
    const TriggerEntry& entry = entries[all.first];
    if (++all.command < entry.count) return false;
    all = {entry.next, entry.next == 0 ? 0 : all.last, 0};
    return true;
  }
  /// Ends a fired operation.
  ///   is_done  false: it was refused; its completion triggers nothing
  BEELINE_HOST_DEVICE void finish(std::uint32_t number, bool is_done) const {
    TriggerEntry& entry = entries[number];
    if (is_done && entry.then != no_chain) add(entry.then, 1);
    // On a GPU one fence serves both stores; each release would take one.
    if constexpr (detail::executor == DeviceKind::gpu) machine::fence_acquire_release();
    publish(entry.over, entry.over + 1);
    publish(totals->over, totals->over + 1);
  }
  /// Ends a command of the queue's first operation.
  BEELINE_HOST_DEVICE void end_command(std::uint32_t queue, bool is_done) const {
    const std::uint32_t number = fired[queue].first;
    if (advance(queue)) finish(number, is_done);
  }

 private:
  /// Stores a word that the host reads at any time.
  BEELINE_HOST_DEVICE static void note(std::uint64_t& word, std::uint64_t value) {
    detail::SystemAtomic<std::uint64_t>(word).store(value, std::memory_order_relaxed);
  }
  /// As above, with release order; on a GPU the last fence has released the earlier stores.
  BEELINE_HOST_DEVICE static void publish(std::uint64_t& word, std::uint64_t value) {
    constexpr bool is_fenced = detail::executor == DeviceKind::gpu;
    detail::SystemAtomic<std::uint64_t>(word).store(value,
                                                    is_fenced ? std::memory_order_relaxed : std::memory_order_release);
  }
};

}  // namespace beeline
