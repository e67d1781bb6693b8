// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a rank knows of failures: ends of ranks, aborted teams and their causes, waits that have failed.

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "host/world/areas.hpp"
#include "host/world/meetings.hpp"
#include "host/world/membership.hpp"
#include "host/world/own_process.hpp"
#include "host/world/teams.hpp"
#include "host/world/wait_texts.hpp"

namespace beeline {

/// What the end of a team has to do with streams and engines.
struct FailureActions {
  /// Hands the abort words of the host area to this rank's kernels.
  std::function<void()> notify_kernels;
  /// Sets memory that kernels use to zero, and waits for it.
  std::function<void(void*, std::size_t)> zero;
  /// Blocks until commands to ranks of other nodes use no source in this rank's memory.
  std::function<void(const std::vector<int>& ranks)> end_sources;
};

/// Thread-safe. Sets of teams are masks of ids.
class Failures {
 public:
  /// All references outlive it.
  Failures(const Membership& membership, const Areas& areas, Teams& teams, const Meetings& meetings,
           const OwnProcess& process, FailureActions actions);

  // --- What has failed ------------------------------------------------------------------------------------------

  /// One of `watched` that is aborted, or -1.
  [[nodiscard]] int failed_team(std::uint32_t watched) const;
  /// Whether the world is aborted.
  [[nodiscard]] bool failed() const { return failed_team(Teams::world_only) >= 0; }
  /// Whether it is within the time that waits which begin together may end apart.
  [[nodiscard]] bool failed_soon() const;
  /// Every failed wait of this node's ranks.
  [[nodiscard]] std::vector<WaitRecord> waits() const;
  [[nodiscard]] std::vector<WaitRecord> waits_of(std::uint32_t team) const;
  /// The same, once those that are noticing its abort have recorded themselves.
  [[nodiscard]] std::vector<WaitRecord> gather_waits(std::uint32_t team) const;
  /// Why a team ended.
  struct End {
    Status status = Status::ok;
    std::string text;
  };
  /// The cause that a member on this node has left when it aborted `team`; ok and empty if none has.
  [[nodiscard]] End cause_of_abort(std::uint32_t team) const;
  /// Why this rank's team failed, for members on other nodes.
  [[nodiscard]] std::string cause_for_others(std::uint32_t team) const;

  // --- Failing --------------------------------------------------------------------------------------------------

  /// Keeps the reason for which a rank (-1: the launcher) ended, and ends this rank's waits in every team that it
  /// belongs to (in all, when it is the launcher).
  void note_end(int culprit, const std::string& reason);
  /// Raises the words of this rank's `team` again where an end concerns it that came while the team was being made.
  void raise_missed_ends(std::uint32_t team);
  /// Aborts the team of a context, once the others can read why.
  void raise_with_cause(Status status, const std::string& text, const Context& among) const;
  /// Keeps an abort of a team on another node, and why it was.
  void take_remote_abort(std::uint32_t team, std::uint64_t word, const std::string& cause) const;
  /// Records why this rank's engine refused a command, for the errors of ranks that wait for its effect.
  void note_refusal(const std::string& text) const;
  void notify_kernels() const { actions_.notify_kernels(); }

  /// Throws what went wrong in one of `watched`, if anything did.
  void check(std::uint32_t watched) const;
  /// `also`: what the caller knows of it.
  [[noreturn]] void fail(Status status, std::uint32_t team, const std::string& also = {}) const;
  /// After the end of a meeting in `call` that not all ranks came to: throws an error that names the waits of those who
  /// are elsewhere, which a deadline ends first, by aborting the world; of ranks that have left, the waits that failed.
  [[noreturn]] void fail_meeting(const char* call, const Error& missing, const Context& world) const;

  // --- Going on -------------------------------------------------------------------------------------------------

  /// A clean start for the team `id`: abort words, records and barrier state of an earlier one are forgotten.
  void clear(std::uint32_t id) const;
  /// Forgets this rank's records of the teams `ids`.
  void forget_waits(std::uint32_t ids) const;

  [[nodiscard]] std::string describe(const WaitRecord& record) const { return detail::describe(known(record)); }

 private:
  /// The end of a rank, or of the launcher (-1).
  struct RankEnd {
    int rank;
    std::string reason;
  };
  void raise(std::uint32_t team, int culprit) const;
  void keep_cause(Status status, const std::string& text) const;
  [[nodiscard]] std::vector<RankEnd> ends() const;
  /// The end of a rank (or the launcher) for which `team` was aborted; ok and empty if none was.
  [[nodiscard]] End end_of(std::uint32_t team) const;
  /// What the engines of a team's members refused, a line each.
  [[nodiscard]] std::string refusals_in(std::uint32_t team) const;
  [[nodiscard]] detail::KnownWait known(const WaitRecord& record) const;
  [[nodiscard]] std::string describe_all(const std::vector<WaitRecord>& waits, const std::string& known_text) const;

  const Membership& membership_;
  const Areas& areas_;
  Teams& teams_;
  const Meetings& meetings_;
  const OwnProcess& process_;
  const FailureActions actions_;
  mutable std::mutex mutex_;
  std::vector<RankEnd> ends_;  ///< in the order in which they became known; guarded by mutex_
};

}  // namespace beeline
