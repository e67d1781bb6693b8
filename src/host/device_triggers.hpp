// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Triggered operations of a device engine (control/service_triggers.hpp), as the host sees them.

#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "beeline/host/team.hpp"
#include "control/service_triggers.hpp"
#include "control/trigger_table.hpp"
#include "host/device_engine.hpp"

namespace beeline {

/// The table lies in the device's memory. Between leases the host has it: it changes a copy in its own memory, which
/// the next lease begins with. So whatever changes it waits for the end of a lease; what only looks reads words of the
/// device. Thread-safe.
class DeviceTriggers final : public TriggerBackEnd {
 public:
  /// Collective.
  ///   queues  of the engine's
  ///   fail    called, once, with what is unmatched at its deadline, by the engine's thread
  DeviceTriggers(Team& team, DeviceEngine& engine, std::uint32_t queues, const TriggerTable::Size& size,
                 std::function<void(const std::string&)> fail);

  ArmedOperation arm(const TriggeredCommands& what) override;
  bool cancel(ArmedOperation operation) override;
  void close() override;
  [[nodiscard]] bool is_over(ArmedOperation operation) override;
  [[nodiscard]] std::string describe(ArmedOperation operation) override;
  [[nodiscard]] bool is_idle() override;
  [[nodiscard]] std::uint64_t count(std::uint32_t tag) const override;
  [[nodiscard]] std::uint32_t armed() override;
  [[nodiscard]] const char* trigger(std::uint64_t tag, std::uint64_t count) override;

  // --- By the engine's thread ------------------------------------------------------------------------------------

  /// Before a lease: what has changed goes to the device, whose table counts from now on.
  [[nodiscard]] ServiceTriggers show();
  /// Between leases: fails where something is unmatched at its deadline.
  void look();

 private:
  /// The table, in memory of the device or of the host.
  struct Table {
    Table(Team& team, const TriggerTable::Size& size, Heap heap)
        : tags(team, size.tags, heap), entries(team, size.entries + std::size_t{1}, heap),
          commands(team, size.entries + std::size_t{1}, heap), totals(team, 1, heap) {}
    SymmetricArray<ServiceTag> tags;
    SymmetricArray<ServiceEntry> entries;
    SymmetricArray<ServiceCommands> commands;
    SymmetricArray<ServiceTotals> totals;
  };
  /// What the block need not know of an entry.
  struct Entry {
    std::uint32_t tag = 0;
    std::uint32_t turns = 0;  ///< operations that it has held
    std::uint64_t armed_ns = 0, deadline_ns = 0;
  };
  /// And of a tag.
  struct Tag {
    std::uint64_t seen = 0;       ///< its count, at the last look
    std::uint64_t matched = 0;    ///< the highest threshold that was ever armed
    std::uint64_t latest_ns = 0;  ///< when its count was first seen
    std::uint32_t last = 0;       ///< of its armed entries, if it has any
  };
  /// What the host has changed in an array.
  struct Changed {
    std::size_t first = std::numeric_limits<std::size_t>::max(), end = 0;
    void add(std::size_t index);
    template <class T>
    void write(World& world, const SymmetricArray<T>& to, const SymmetricArray<T>& from) const;
  };

  /// Calls `change` between leases, with the lock held and the table here.
  void change(const std::function<void()>& change);
  // With the lock held.
  void read_table();
  [[nodiscard]] std::uint64_t read(const std::uint64_t& here, const std::uint64_t& there) const;
  [[nodiscard]] ServiceTag& changed_tag(std::uint32_t tag);
  [[nodiscard]] ServiceEntry& changed_entry(std::uint32_t number);
  [[nodiscard]] std::uint32_t free_entry();
  void insert(std::uint32_t tag, std::uint32_t number);
  /// Takes an armed entry out of its tag's list. Whether it was there, and its threshold is not reached.
  [[nodiscard]] bool take_out(std::uint32_t number);
  /// The block fires what the count of a tag has reached, in the next lease.
  void fire_if_met(std::uint32_t tag);
  void drop_armed();
  void note_counts(std::uint64_t now_ns);
  [[nodiscard]] std::uint64_t deadline_of(std::uint32_t number) const;
  [[nodiscard]] std::string find_unmatched(std::uint64_t now_ns);

  DeviceEngine& engine_;
  Team& team_;
  const TriggerTable::Size size_;
  const std::uint32_t queues_;
  const std::function<void(const std::string&)> fail_;
  mutable std::mutex mutex_;
  Table there_, here_;
  SymmetricArray<FiredOperations> fired_;  ///< [queues]
  bool is_here_ = true;                    ///< no lease has begun since the table was read
  Changed tags_changed_, entries_changed_;
  std::vector<Entry> entries_;       ///< [entries + 1], as those of the table
  std::vector<Tag> tags_;            ///< [tags]
  std::vector<std::uint32_t> free_;  ///< entries that have been used, and are free
  std::uint32_t used_ = 0;           ///< entries that have ever been used: the first ones
  std::uint64_t armed_ = 0;          ///< operations in all, without those that were cancelled
  std::uint64_t next_look_ns_ = 0;
  bool has_failed_ = false;
};

}  // namespace beeline
