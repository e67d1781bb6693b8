// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table of triggered operations that host threads carry out.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "control/trigger_table.hpp"

namespace beeline {

/// Identifies a command of a fired operation that an engine carries out.
struct FiredCommand {
  std::uint32_t entry = 0;
  bool is_last = false;  ///< whether it is the operation's last command
};

namespace detail {

/// The memory of a table in host memory; a base class, so that it exists before the table.
struct HostTriggerMemory {
  HostTriggerMemory(const TriggerTable::Size& size, std::uint32_t queue_count)
      : tag_list(size.tags), entry_list(size.entries + std::size_t{1}), command_list(entry_list.size()),
        fired_list(queue_count) {}

  [[nodiscard]] TriggerLists lists() {
    return {tag_list.data(),
            entry_list.data(),
            command_list.data(),
            fired_list.data(),
            &totals,
            static_cast<std::uint32_t>(tag_list.size()),
            static_cast<std::uint32_t>(fired_list.size())};
  }

  std::vector<TriggerTag> tag_list;
  std::vector<TriggerEntry> entry_list;
  std::vector<EntryCommands> command_list;
  std::vector<FiredOperations> fired_list;
  TriggerTotals totals{};
};

}  // namespace detail

class HostTriggers final : detail::HostTriggerMemory, public TriggerTable {
 public:
  ///   wake  wakes the engine's thread of a queue
  ///   fail  see TriggerTable
  HostTriggers(const Size& size, std::uint32_t queues, std::function<void(std::uint32_t queue)> wake,
               std::function<void(const std::string&)> fail);

  // Called by the engine's thread of a queue.

  [[nodiscard]] bool has_fired(std::uint32_t queue) const { return waiting_[queue].load(std::memory_order_acquire); }
  /// Takes the queue's next command of fired operations.
  [[nodiscard]] bool take(std::uint32_t queue, Command& command, FiredCommand& fired);
  /// Ends an operation.
  ///   is_done  false: it was refused; its completion triggers nothing
  void finish(const FiredCommand& last, bool is_done);
  /// Fails the table if an operation or trigger is unmatched at its deadline.
  void check_deadlines(std::uint64_t now_ns);

 private:
  void change(const std::function<void()>& change) override;
  void fire_met(std::uint32_t tag) override;
  void expect_deadline(std::uint64_t deadline_ns) override;
  /// Records that operations of a tag may have fired.
  void note_fired(std::uint32_t tag);

  static constexpr std::uint32_t no_queue = ~std::uint32_t{0};

  const std::function<void(std::uint32_t queue)> wake_;
  std::vector<std::atomic<bool>> waiting_;           ///< [queues] whether operations have fired; read without the lock
  std::uint32_t woken_ = no_queue;                   ///< the queue to wake when the lock is released
  std::atomic<std::uint64_t> next_check_ns_{never};  ///< no deadline ends before this time
};

}  // namespace beeline
