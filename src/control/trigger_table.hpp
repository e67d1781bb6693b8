// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table of an engine's triggered operations (docs/control.md, Triggered operations).

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "control/trigger_back_end.hpp"

namespace beeline {

/// What is unmatched at its deadline, for people: an armed operation, or triggers that nothing is armed for.
/// An armed operation in words.
[[nodiscard]] std::string text_of_armed(std::uint32_t tag, std::uint64_t count, std::uint64_t threshold,
                                        const Command& command);
[[nodiscard]] std::string text_of_unreached(std::uint32_t tag, std::uint64_t count, std::uint64_t threshold,
                                            const Command& command);
[[nodiscard]] std::string text_of_unarmed(std::uint32_t tag, std::uint64_t count, std::uint64_t matched,
                                          std::uint64_t deadline_ns);

/// A command that an engine is to do, of an operation that has fired.
struct FiredCommand {
  std::uint32_t entry = 0;
  bool is_last = false;  ///< of its operation
};

/// Tags, what is armed for them, and what has fired. A tag belongs to one queue, whose engine thread fires all of its
/// operations, in the order of their thresholds, and those of a threshold as they were armed. Thread-safe.
class TriggerTable final : public TriggerBackEnd {
 public:
  struct Size {
    std::uint32_t tags = 1, entries = 1;
    std::uint64_t deadline_ns = 0;  ///< of what says none itself
  };

  ///   rings  one for each queue: their threads are woken
  ///   fail   called, once, with what is unmatched at its deadline, by the thread that finds it
  TriggerTable(const Size& size, std::vector<CommandRing*> rings, std::function<void(const std::string&)> fail);

  ArmedOperation arm(const TriggeredCommands& what) override;
  bool cancel(ArmedOperation operation) override;
  void close() override;
  [[nodiscard]] bool is_over(ArmedOperation operation) override;
  [[nodiscard]] std::string describe(ArmedOperation operation) override;
  [[nodiscard]] bool is_idle() override;
  [[nodiscard]] std::uint64_t count(std::uint32_t tag) const override;
  [[nodiscard]] std::uint32_t armed() override;
  [[nodiscard]] const char* trigger(std::uint64_t tag, std::uint64_t count) override;

  // --- By the engine's thread of a queue -----------------------------------------------------------------------

  [[nodiscard]] bool has_fired(std::uint32_t queue) const {
    return queues_[queue].waiting.load(std::memory_order_acquire) > 0;
  }
  /// The next command of the queue's that has fired.
  [[nodiscard]] bool take(std::uint32_t queue, Command& command, FiredCommand& fired);
  /// An operation is over.
  ///   is_done  false: it was refused; its completion triggers nothing
  void finish(const FiredCommand& last, bool is_done);
  /// Fails where something is unmatched at its deadline.
  void check_deadlines(std::uint64_t now_ns);

 private:
  enum class State : std::uint8_t { free, armed, fired };
  struct Entry {
    TriggeredCommands what;
    State state = State::free;
    std::uint32_t turn = 0;  ///< operations that the entry has held before
    std::uint64_t armed_ns = 0;
  };
  struct Tag {
    std::uint64_t count = 0;
    std::uint64_t matched = 0;         ///< the highest threshold that was ever armed: triggers beyond have no operation
    std::uint64_t latest_ns = 0;       ///< of its triggers
    std::vector<std::uint32_t> armed;  ///< entries, by threshold
  };
  struct Fired {
    std::uint32_t entry, command;
  };
  struct Queue {
    CommandRing* ring = nullptr;
    std::deque<Fired> fired;
    std::atomic<std::size_t> waiting{0};  ///< how many there are: read without the lock
  };

  // With the lock held.
  [[nodiscard]] bool holds(ArmedOperation operation, State state) const;
  void add(std::uint32_t tag, std::uint64_t count, std::uint64_t now_ns);
  void fire(std::uint32_t tag);
  void release(std::uint32_t entry);
  [[nodiscard]] std::uint64_t deadline_of(const Entry& entry) const;
  [[nodiscard]] std::string find_unmatched(std::uint64_t now_ns);
  [[nodiscard]] std::string describe(std::uint32_t tag, const Entry* entry) const;
  /// Wakes the thread of a tag's queue, without the lock.
  void wake(std::uint32_t tag) const;

  const Size size_;
  const std::function<void(const std::string&)> fail_;
  mutable std::mutex mutex_;
  std::vector<Tag> tags_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;  ///< entries
  std::vector<Queue> queues_;
  std::uint32_t armed_ = 0, under_way_ = 0;
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  std::atomic<std::uint64_t> next_check_ns_{never};  ///< nothing is unmatched at its deadline before
};

}  // namespace beeline
