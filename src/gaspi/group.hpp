// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Groups of ranks. A committed group is a team of Beeline.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "beeline/beeline.h"

namespace beeline::gaspi {

/// Groups of a process, `GASPI_GROUP_ALL` (number 0) included.
inline constexpr std::uint32_t most_groups = 33;
/// Bytes that an all-reduce of a group combines at most: 255 elements of 8 bytes.
inline constexpr std::size_t most_reduced_bytes = 255 * 8;
/// Bytes from one member's row to the next in `Group::gathered`: two vectors, each with a signal (reductions.hpp).
inline constexpr std::size_t reduced_row_bytes = 4096;

/// What the data plane keeps for a group between calls, such as the stage of an all-reduce that timed out.
struct GroupWork {
  virtual ~GroupWork() = default;
  /// Whether a call has timed out and was not called again until its end.
  [[nodiscard]] virtual bool is_open() const = 0;
};

/// A group of this process. The number is local: other members may have another one.
struct Group {
  enum class State { building, committing, committed };

  const std::uint32_t number;
  std::vector<int> ranks;  ///< world ranks, ascending; does not change once the group is committed
  std::atomic<State> state{State::building};
  // Of committed groups; set before `state`.
  std::uint64_t serial = 0;      ///< of the team, the same on all members
  bool commit_is_taken = false;  ///< a call of gaspi_group_commit has returned success; used by that function alone
  beeline_team* team = nullptr;
  std::byte* gathered = nullptr;     ///< symmetric memory of the team: [members][reduced_row_bytes], for all-reduces by
                                     ///< functions of the user
  std::uint64_t* entered = nullptr;  ///< behind it, symmetric: number of barriers that the member has entered
  // For the calls that all members make: a thread sets a flag for the time of its call.
  std::atomic<bool> is_in_barrier{false};
  std::atomic<bool> is_in_reduction{false};
  bool has_open_barrier = false;    ///< a barrier has timed out; used by the thread that has set `is_in_barrier`
  std::unique_ptr<GroupWork> work;  ///< used by the thread that has set `is_in_reduction`

  explicit Group(std::uint32_t which) : number(which) {}
};

/// Thread-safe. Groups that are deleted stay alive while a call uses them.
class GroupTable {
 public:
  /// A new, empty group; nullptr if there are `most_groups`.
  [[nodiscard]] std::shared_ptr<Group> create();
  /// nullptr for a number that is not in use.
  [[nodiscard]] std::shared_ptr<Group> find(std::uint32_t number) const;
  /// As `find`, without a lock if it is the group for which this thread has looked last, and no group has been made or
  /// removed since. The result is valid until the thread's next call.
  [[nodiscard]] Group* find_again(std::uint32_t number) const {
    const std::uint64_t now = changes.load(std::memory_order_acquire);
    if (last.changes == now && last.number == number) [[likely]]
      return last.group;
    return find_and_keep(number, now);
  }
  /// Removes a group from the table.
  void remove(std::uint32_t number);
  [[nodiscard]] std::uint32_t count() const;

 private:
  /// The group for which a thread has looked last; the thread also keeps it alive until it looks for another one.
  struct Last {
    std::uint64_t changes;
    std::uint32_t number;
    Group* group;
  };

  [[nodiscard]] Group* find_and_keep(std::uint32_t number, std::uint64_t now) const;

  /// Number of changes of all tables of this process.
  static inline std::atomic<std::uint64_t> changes{1};
  static inline thread_local constinit Last last __attribute__((tls_model("initial-exec"))) = {};

  mutable std::mutex mutex_;
  std::array<std::shared_ptr<Group>, most_groups> groups_;
};

}  // namespace beeline::gaspi
