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

/// An armed operation in words.
[[nodiscard]] std::string text_of_armed(std::uint32_t tag, std::uint64_t count, std::uint64_t threshold,
                                        const Command& command);
/// An armed operation whose threshold is not reached by its deadline.
[[nodiscard]] std::string text_of_unreached(std::uint32_t tag, std::uint64_t count, std::uint64_t threshold,
                                            const Command& command);

/// Tags, what is armed for them, and what has fired. A tag belongs to one queue, whose engine carries out all of its
/// operations, in the order of their thresholds, and those of a threshold as they were armed. Thread-safe.
///
/// The lists are in memory of the host, or there are two of each: those of a device, and a copy of the host's, of which
/// one is current. A class for each kind of memory says which, and how a thread gets them for itself.
class TriggerTable : public TriggerBackEnd {
 public:
  struct Size {
    std::uint32_t tags = 1, entries = 1;
    std::uint64_t deadline_ns = 0;  ///< of what says none itself
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
  ///   here, there  the lists in the host's and in the device's memory, whose words are 0; the same if there is only
  ///   one fail         called, once, with what is unmatched at its deadline, by the thread that finds it
  TriggerTable(const Size& size, const TriggerLists& here, const TriggerLists& there,
               std::function<void(const std::string&)> fail);

  /// Calls `change` with the lock held and the current lists here.
  virtual void change(const std::function<void()>& change) = 0;
  /// Whether the lists of the host are current. With the lock held.
  [[nodiscard]] virtual bool is_here() const { return true; }
  /// A word of a device.
  [[nodiscard]] virtual std::uint64_t read_there(const std::uint64_t& word) const { return word; }
  /// What the count of a tag has reached is to fire.
  virtual void fire_met(std::uint32_t tag) = 0;
  /// Something may be unmatched at this time, and was not known to be before.
  virtual void expect_deadline([[maybe_unused]] std::uint64_t deadline_ns) {}
  // The lists of the host change.
  virtual void note_tag([[maybe_unused]] std::uint32_t tag) {}
  virtual void note_entry([[maybe_unused]] std::uint32_t number) {}

  // With the lock held, and the current lists here.

  /// Cancels all.
  void drop_armed();
  /// The count of a tag has changed.
  void note_count(std::uint32_t tag, std::uint64_t now_ns);
  /// In words; empty: nothing is unmatched at its deadline before `next_deadline_ns`.
  [[nodiscard]] std::string find_unmatched(std::uint64_t now_ns, std::uint64_t& next_deadline_ns) const;
  /// Ends the table, whose lock is not held.
  void fail(const std::string& unmatched) { fail_(unmatched); }

  /// What an engine need not know of an entry.
  struct Entry {
    std::uint32_t tag = 0;
    std::uint32_t turns = 0;  ///< operations that it has held
    std::uint64_t armed_ns = 0, deadline_ns = 0;
  };
  /// The same of a tag.
  struct Tag {
    std::uint64_t matched = 0;    ///< the highest threshold that was ever armed: triggers beyond have no operation
    std::uint64_t latest_ns = 0;  ///< of its triggers
    std::uint32_t last = 0;       ///< of its armed entries, if it has any
  };
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  const Size size_;
  const TriggerLists here_, there_;
  mutable std::mutex mutex_;
  std::vector<Tag> tags_;       ///< [tags]
  std::vector<Entry> entries_;  ///< [entries + 1]
  std::uint32_t used_ = 0;      ///< entries that have ever been used: the first ones

 private:
  [[nodiscard]] std::uint64_t read(std::uint64_t TriggerTotals::*word) const;
  [[nodiscard]] bool holds(ArmedOperation operation) const;
  [[nodiscard]] bool has_ended(ArmedOperation operation) const;
  [[nodiscard]] std::uint64_t count_of(std::uint32_t tag) const;
  [[nodiscard]] std::uint32_t free_entry();
  void insert(std::uint32_t tag, std::uint32_t number);
  /// Takes an armed entry out of its tag's list. Whether it was there, and its threshold is not reached.
  bool take_out(std::uint32_t number);
  [[nodiscard]] TriggerTag& changed_tag(std::uint32_t tag);
  [[nodiscard]] TriggerEntry& changed_entry(std::uint32_t number);
  [[nodiscard]] std::uint64_t deadline_of(std::uint32_t number) const;

  const std::function<void(const std::string&)> fail_;
  std::vector<std::uint32_t> free_;  ///< entries that have been used, and are free
  std::uint64_t armed_ = 0;          ///< operations in all, without those that were cancelled
};

}  // namespace beeline
