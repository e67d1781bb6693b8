// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A rank's knowledge of failures: ends of ranks, aborted teams and their causes, failed waits.

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

/// Actions on streams and engines that the failure of a team needs.
struct FailureActions {
  /// Copies the abort words of the host area to the words that this rank's kernels poll.
  std::function<void()> notify_kernels;
  /// Sets memory that kernels use to zero, and waits for completion.
  std::function<void(void*, std::size_t)> zero;
  /// Blocks until no command to `ranks`, on other nodes, reads this rank's memory.
  std::function<void(const std::vector<int>& ranks)> end_sources;
};

/// Thread-safe. Sets of teams are masks of ids.
class Failures {
 public:
  /// All references outlive this object.
  Failures(const Membership& membership, const Areas& areas, Teams& teams, const Meetings& meetings,
           const OwnProcess& process, FailureActions actions);

  // --- What has failed ------------------------------------------------------------------------------------------

  /// An aborted team in the set `watched`, or -1.
  [[nodiscard]] int failed_team(TeamSet watched) const;
  /// Whether the world is aborted.
  [[nodiscard]] bool failed() const { return failed_team(Teams::world_only) >= 0; }
  /// Waits briefly for an abort of the world, since simultaneous waits may end at slightly different times; returns
  /// whether the world is aborted.
  [[nodiscard]] bool failed_soon() const;
  /// All failed waits of this node's ranks.
  [[nodiscard]] std::vector<WaitRecord> waits() const;
  [[nodiscard]] std::vector<WaitRecord> waits_of(std::uint32_t team) const;
  /// As `waits_of`, after the waits that are noticing the abort have been recorded.
  [[nodiscard]] std::vector<WaitRecord> gather_waits(std::uint32_t team) const;
  /// Why a team ended.
  struct End {
    Status status = Status::ok;
    std::string text;
  };
  /// The cause that a member on this node recorded when it aborted `team`; ok and empty if none did.
  [[nodiscard]] End cause_of_abort(std::uint32_t team) const;
  /// Why this rank's team failed, for members on other nodes.
  [[nodiscard]] std::string cause_for_others(std::uint32_t team) const;

  // --- Failing --------------------------------------------------------------------------------------------------

  /// Records why a rank (-1: the launcher) ended, and ends this rank's waits in every team of the ended rank (in all
  /// teams if the launcher ended).
  void note_end(int culprit, const std::string& reason);
  /// Raises the abort words of this rank's `team` for ends of members that were recorded while the team was being made.
  void raise_missed_ends(std::uint32_t team);
  /// Aborts the team of a context, after publishing the cause to the other ranks.
  void raise_with_cause(Status status, const std::string& text, const Context& among) const;
  /// Records an abort of a team by a rank on another node, and its cause.
  void take_remote_abort(std::uint32_t team, std::uint64_t word, const std::string& cause) const;
  /// Publishes why this rank's engine refused a command, for the errors of ranks that wait for the command's effect.
  void note_refusal(const std::string& text) const;
  void notify_kernels() const { actions_.notify_kernels(); }

  /// Throws the failure of a team in the set `watched`, if there is one.
  void check(TeamSet watched) const;
  /// Throws the error of a failed team. `also`: a text that the caller adds.
  [[noreturn]] void fail(Status status, std::uint32_t team, const std::string& also = {}) const;
  /// Throws the error of a collective call that some ranks did not reach. It names the waits of these ranks; a deadline
  /// first aborts the world, which ends those waits. For ranks that have left it names their failed waits.
  [[noreturn]] void fail_meeting(const char* call, const Error& missing, const Context& world) const;

  // --- Going on -------------------------------------------------------------------------------------------------

  /// Resets the state of the team id `id`: clears abort words, records and barrier state of an earlier team.
  void clear(std::uint32_t id) const;
  /// Deletes this rank's records of failed waits in the teams `ids`.
  void forget_waits(TeamSet ids) const;

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
  /// The end of a rank (or of the launcher) that caused the abort of `team`; ok and empty if there is none.
  [[nodiscard]] End end_of(std::uint32_t team) const;
  /// Refusals by the engines of a team's members, one line each.
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
  std::vector<RankEnd> ends_;  ///< in the order of `note_end`; guarded by mutex_
};

}  // namespace beeline
