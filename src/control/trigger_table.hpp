// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table of an engine's triggered operations (docs/triggers.md).

#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "control/trigger_back_end.hpp"
#include "control/trigger_lists.hpp"

namespace beeline {

/// Describes an armed operation.
[[nodiscard]] std::string text_of_armed(std::uint32_t tag, std::uint64_t count, std::uint64_t threshold,
                                        const Command& command);
/// Describes an armed operation whose threshold was not reached by its deadline.
[[nodiscard]] std::string text_of_unreached(std::uint32_t tag, std::uint64_t count, std::uint64_t threshold,
                                            const Command& command);

/// Tags, their armed operations, and fired operations. A tag belongs to one queue, whose engine carries out all of the
/// tag's operations in the order of their thresholds, and those of equal threshold in the order of arming. Thread-safe.
///
/// The lists are in host memory; or there are two copies of each, one in memory of a device and one in host memory, of
/// which one is current. A derived class for each kind of memory says which, and how a thread gets exclusive use of the
/// lists.
class TriggerTable : public TriggerBackEnd {
 public:
  struct Size {
    std::uint32_t tags = 1, entries = 1;
    std::uint64_t deadline_ns = 0;  ///< deadline of operations that name none
  };

  ArmedOperation arm(const TriggeredCommands& what) override;
  bool cancel(ArmedOperation operation) override;
  void close() override;
  [[nodiscard]] bool is_over(ArmedOperation operation) override;
  [[nodiscard]] std::string describe(ArmedOperation operation) override;
  [[nodiscard]] bool is_idle() override;
  [[nodiscard]] std::uint64_t count(std::uint32_t tag) const override;
  [[nodiscard]] std::uint32_t armed() override;
  [[nodiscard]] const char* trigger(std::uint64_t tag, std::uint64_t count) override;

  [[nodiscard]] std::uint32_t tags() const { return size_.tags; }

 protected:
  ///   here, there  the lists in the host's and in the device's memory, all words 0; the same lists if there is only
  ///       one
  ///   fail         called once, by the thread that finds operations or triggers unmatched at their deadline
  TriggerTable(const Size& size, const TriggerLists& here, const TriggerLists& there,
               std::function<void(const std::string&)> fail);

  /// Calls `change` with the lock held and the current lists in `here`.
  virtual void change(const std::function<void()>& change) = 0;
  /// Whether the host's lists are current. With the lock held.
  [[nodiscard]] virtual bool is_here() const { return true; }
  /// Reads a word of the device's lists.
  [[nodiscard]] virtual std::uint64_t read_there(const std::uint64_t& word) const { return word; }
  /// Fires the operations of a tag whose thresholds its count has reached.
  virtual void fire_met(std::uint32_t tag) = 0;
  /// An operation or trigger that was not known before may be unmatched at this time.
  virtual void expect_deadline([[maybe_unused]] std::uint64_t deadline_ns) {}
  // Called before the host's lists change.
  virtual void note_tag([[maybe_unused]] std::uint32_t tag) {}
  virtual void note_entry([[maybe_unused]] std::uint32_t number) {}

  // These are called with the lock held, and the current lists in `here`.

  /// Cancels all armed operations.
  void drop_armed();
  /// Records that the count of a tag has changed.
  void note_count(std::uint32_t tag, std::uint64_t now_ns);
  /// Describes the operations or triggers unmatched at their deadline; empty if none is. Sets the next deadline's time.
  [[nodiscard]] std::string find_unmatched(std::uint64_t now_ns, std::uint64_t& next_deadline_ns) const;
  /// Ends the table. Called without the lock.
  void fail(const std::string& unmatched) { fail_(unmatched); }

  /// The part of an entry that engines do not need.
  struct Entry {
    std::uint32_t tag = 0;
    std::uint32_t turns = 0;  ///< operations that the entry has held so far
    std::uint64_t armed_ns = 0, deadline_ns = 0;
  };
  /// The part of a tag that engines do not need.
  struct Tag {
    std::uint64_t matched = 0;    ///< the highest threshold ever armed: triggers beyond it have no operation
    std::uint64_t latest_ns = 0;  ///< time of its latest trigger
    std::uint32_t last = 0;       ///< the last of its armed entries, if it has any
  };
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  const Size size_;
  const TriggerLists here_, there_;
  mutable std::mutex mutex_;
  std::vector<Tag> tags_;       ///< [tags]
  std::vector<Entry> entries_;  ///< [entries + 1]
  std::uint32_t used_ = 0;      ///< entries that have ever been used: numbers from 1

 private:
  [[nodiscard]] std::uint64_t read(std::uint64_t TriggerTotals::*word) const;
  [[nodiscard]] bool holds(ArmedOperation operation) const;
  [[nodiscard]] bool has_ended(ArmedOperation operation) const;
  [[nodiscard]] std::uint64_t count_of(std::uint32_t tag) const;
  [[nodiscard]] std::uint32_t free_entry();
  void insert(std::uint32_t tag, std::uint32_t number);
  /// Takes an armed entry out of its tag's list. Returns false if it was not in the list, or its threshold is reached.
  bool take_out(std::uint32_t number);
  [[nodiscard]] TriggerTag& changed_tag(std::uint32_t tag);
  [[nodiscard]] TriggerEntry& changed_entry(std::uint32_t number);
  [[nodiscard]] std::uint64_t deadline_of(std::uint32_t number) const;

  const std::function<void(const std::string&)> fail_;
  std::vector<std::uint32_t> free_;  ///< entries that were used, and are free
  std::uint64_t armed_ = 0;          ///< operations armed in all, without those that were cancelled
};

}  // namespace beeline
