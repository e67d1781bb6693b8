// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "beeline/host/team.hpp"
#include "control/trigger_table.hpp"
#include "host/device_engine.hpp"

namespace beeline {

namespace detail {

/// Trigger lists in device memory and in host memory. This is a base class, so that the lists are made before the
/// table.
struct DeviceTriggerMemory {
  struct Arrays {
    Arrays(Team& team, const TriggerTable::Size& size, Heap heap)
        : tags(team, size.tags, heap), entries(team, size.entries + std::size_t{1}, heap),
          commands(team, size.entries + std::size_t{1}, heap), totals(team, 1, heap) {}
    SymmetricArray<TriggerTag> tags;
    SymmetricArray<TriggerEntry> entries;
    SymmetricArray<EntryCommands> commands;
    SymmetricArray<TriggerTotals> totals;
  };
  DeviceTriggerMemory(Team& team, const TriggerTable::Size& size, std::uint32_t queues)
      : there(team, size, Heap::symmetric), here(team, size, Heap::pinned), fired(team, queues) {}

  [[nodiscard]] TriggerLists lists(Arrays& arrays) {
    return {arrays.tags.data(),
            arrays.entries.data(),
            arrays.commands.data(),
            fired.data(),
            arrays.totals.data(),
            static_cast<std::uint32_t>(arrays.tags.count()),
            static_cast<std::uint32_t>(fired.count())};
  }

  Arrays there, here;
  SymmetricArray<FiredOperations> fired;
};

}  // namespace detail

/// During a lease the device's lists are current. Between leases the host's copy is current; the next lease begins with
/// it. So a change waits for the end of a lease, and a query during a lease reads words of the device.
class DeviceTriggers final : detail::DeviceTriggerMemory, public TriggerTable {
 public:
  /// Collective.
  ///   queues  number of the engine's queues
  ///   fail    called once, by the engine's thread, with a text of the operations that are unmatched at their deadline
  DeviceTriggers(Team& team, DeviceEngine& engine, std::uint32_t queues, const Size& size,
                 std::function<void(const std::string&)> fail);

  ArmedOperation arm(const TriggeredCommands& what) override;

  // --- By the engine's thread ------------------------------------------------------------------------------------

  /// Called before a lease: copies the host's changes of the lists to the device.
  [[nodiscard]] TriggerLists show();
  /// Called between leases: aborts the team if an armed operation has passed its deadline.
  void look();

 private:
  /// The part of an array that the host has changed.
  struct Changed {
    std::size_t first = std::numeric_limits<std::size_t>::max(), end = 0;
    void add(std::size_t index);
    template <class T>
    void write(World& world, const SymmetricArray<T>& to, const SymmetricArray<T>& from) const;
  };

  void change(const std::function<void()>& change) override;
  [[nodiscard]] bool is_here() const override { return is_here_; }
  [[nodiscard]] std::uint64_t read_there(const std::uint64_t& word) const override { return engine_.read(word); }
  /// The block fires the tag's operations in the next lease.
  void fire_met(std::uint32_t tag) override;
  void note_tag(std::uint32_t tag) override { tags_changed_.add(tag); }
  void note_entry(std::uint32_t number) override { entries_changed_.add(number); }
  // Called with the lock held.
  void read_lists();
  void note_counts(std::uint64_t now_ns);

  DeviceEngine& engine_;
  Team& team_;
  bool is_here_ = true;  ///< no lease has begun since the lists were read
  Changed tags_changed_, entries_changed_;
  std::vector<std::uint64_t> seen_;  ///< [tags] counts at the last look
  std::uint64_t next_look_ns_ = 0;
  bool has_failed_ = false;
};

}  // namespace beeline
