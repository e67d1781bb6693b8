// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table of triggered operations that threads of the host carry out.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "control/trigger_table.hpp"

namespace beeline {

/// A command that an engine is to do, of an operation that has fired.
struct FiredCommand {
  std::uint32_t entry = 0;
  bool is_last = false;  ///< of its operation
};

namespace detail {

/// The memory of a table of the host; a base, so that it is there before the table.
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

  // By the engine's thread of a queue.

  [[nodiscard]] bool has_fired(std::uint32_t queue) const { return waiting_[queue].load(std::memory_order_acquire); }
  /// The next command of the queue's that has fired.
  [[nodiscard]] bool take(std::uint32_t queue, Command& command, FiredCommand& fired);
  /// An operation is over.
  ///   is_done  false: it was refused; its completion triggers nothing
  void finish(const FiredCommand& last, bool is_done);
  /// Fails where something is unmatched at its deadline.
  void check_deadlines(std::uint64_t now_ns);

 private:
  void change(const std::function<void()>& change) override;
  void fire_met(std::uint32_t tag) override;
  void expect_deadline(std::uint64_t deadline_ns) override;
  /// Operations of a tag may have fired.
  void note_fired(std::uint32_t tag);

  static constexpr std::uint32_t no_queue = ~std::uint32_t{0};

  const std::function<void(std::uint32_t queue)> wake_;
  std::vector<std::atomic<bool>> waiting_;           ///< [queues] whether operations have fired: read without the lock
  std::uint32_t woken_ = no_queue;                   ///< the queue to wake when the lock is let go
  std::atomic<std::uint64_t> next_check_ns_{never};  ///< nothing is unmatched at its deadline before
};

}  // namespace beeline
