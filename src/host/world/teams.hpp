// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The teams that a rank belongs to, by id.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "beeline/core/layout.hpp"
#include "beeline/device/context.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

/// Ids of teams and their members, world ranks. Sets of teams are masks of ids. Thread-safe.
class Teams {
 public:
  static constexpr std::uint32_t world_id = 0;
  static constexpr TeamSet world_only = 1;  ///< the set that holds the world alone

  /// Begins with the world of `everyone`.
  explicit Teams(std::vector<int> everyone) { teams_[world_id] = std::move(everyone); }

  /// Members of a team; empty if this rank does not belong to it.
  [[nodiscard]] std::vector<int> members(std::uint32_t id) const;
  [[nodiscard]] bool holds(std::uint32_t id) const;
  [[nodiscard]] TeamSet living() const;
  void open(std::uint32_t id, const std::vector<int>& ranks);
  void close(std::uint32_t id);
  /// Sets the world's remaining members.
  void set_world(const std::vector<int>& left);
  /// From now on the world's barrier uses the state of the id `id`.
  void set_barrier_id(std::uint32_t id);

  /// The set of free ids.
  [[nodiscard]] TeamSet free_ids() const;
  /// The set of ids that are free for a team of `ranks`. Excludes an id if a rank outside `ranks` may still belong to
  /// the id's earlier team, of which this rank was a member.
  ///   holds  whether a rank may still belong to the team of an id
  template <class Holds>
  [[nodiscard]] TeamSet free_ids_among(const std::vector<int>& ranks, const Holds& holds) const {
    TeamSet free = free_ids();
    const std::lock_guard lock(mutex_);
    for (const auto& [id, members_then] : former_teams_)
      for (const int other : members_then)
        if (std::find(ranks.begin(), ranks.end(), other) == ranks.end() && holds(other, id)) free &= ~team_set(id);
    return free;
  }

  /// Calls `act(id)` for each team that ends because `culprit` ended (-1, the launcher: all teams), while no team can
  /// be closed. These ids are not used again, since stores of the ended rank may still arrive in their state.
  template <class Act>
  void end_those_of(int culprit, const Act& act) {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, ranks] : teams_) {
      if (!concerns(culprit, ranks)) continue;
      act(id);
      if (culprit >= 0) retired_ids_ |= team_set(id) | (id == world_id ? team_set(barrier_id_) : 0);
    }
  }
  /// Whether the end of `rank` (-1: the launcher) is the end of a team of `ranks`.
  [[nodiscard]] static bool concerns(int rank, const std::vector<int>& ranks) {
    return rank < 0 || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }

  /// Records the launch of a team's kernel on a stream.
  void note_launch(Stream& stream, const Context& in, bool is_captured) {
    if (is_captured)
      captured_ |= team_set(in.team);
    else
      stream.launched_teams().note(team_set(in.team), in.kernel);
  }
  /// Teams whose failure affects the work of a stream.
  [[nodiscard]] TeamSet concerned_by(Stream& stream) const;

  /// Why the members of a team have no LL128, by id; empty optional until first needed. Used by collective calls.
  std::optional<std::string> no_ll128_reasons[max_teams];

 private:
  std::atomic<TeamSet> captured_{0};  ///< teams of kernels in graphs, which may run on any stream
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::vector<int>> teams_;         ///< this rank's teams; world_id: the remaining ranks
  std::map<std::uint32_t, std::vector<int>> former_teams_;  ///< this rank's last team of each id
  std::uint32_t barrier_id_ = 0;                            ///< the id whose state the world's barrier uses
  TeamSet retired_ids_ = 0;
};

}  // namespace beeline
