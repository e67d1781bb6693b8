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
  static constexpr std::uint32_t world_only = 1;  ///< the set that holds the world alone

  /// Begins with the world of `everyone`.
  explicit Teams(std::vector<int> everyone) { teams_[world_id] = std::move(everyone); }

  /// Members of a team; none of one that this rank does not belong to.
  [[nodiscard]] std::vector<int> members(std::uint32_t id) const;
  [[nodiscard]] bool holds(std::uint32_t id) const;
  [[nodiscard]] std::uint32_t living() const;
  void open(std::uint32_t id, const std::vector<int>& ranks);
  void close(std::uint32_t id);
  /// The world goes on among `left`.
  void set_world(const std::vector<int>& left);
  /// From now on the world's barrier uses the state of another id.
  void set_barrier_id(std::uint32_t id);

  /// Ids that are free.
  [[nodiscard]] std::uint32_t free_ids() const;
  /// The same for a team of `ranks` alone: no other rank may still belong to an earlier team that this rank was in.
  ///   holds  whether a rank may still belong to a team of an id
  template <class Holds>
  [[nodiscard]] std::uint32_t free_ids_among(const std::vector<int>& ranks, const Holds& holds) const {
    std::uint32_t free = free_ids();
    const std::lock_guard lock(mutex_);
    for (const auto& [id, members_then] : former_teams_)
      for (const int other : members_then)
        if (std::find(ranks.begin(), ranks.end(), other) == ranks.end() && holds(other, id)) free &= ~(1u << id);
    return free;
  }

  /// Calls `act(id)` for each team that ends with `culprit` (-1, the launcher: all), before any can be closed. A rank
  /// that has ended may yet have stored into the state of these ids: they are not used again.
  template <class Act>
  void end_those_of(int culprit, const Act& act) {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, ranks] : teams_) {
      if (!concerns(culprit, ranks)) continue;
      act(id);
      if (culprit >= 0) retired_ids_ |= 1u << id | (id == world_id ? 1u << barrier_id_ : 0u);
    }
  }
  /// Whether the end of `rank` (-1: the launcher) is the end of a team of `ranks`.
  [[nodiscard]] static bool concerns(int rank, const std::vector<int>& ranks) {
    return rank < 0 || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }

  /// A kernel of a team was launched on a stream.
  void note_launch(Stream& stream, const Context& in, bool is_captured) {
    if (is_captured)
      captured_ |= 1u << in.team;
    else
      stream.launched_teams().note(1u << in.team, in.kernel);
  }
  /// Teams whose failure concerns what a stream does.
  [[nodiscard]] std::uint32_t concerned_by(Stream& stream) const;

  /// Why the members of a team have no LL128, by id; unknown until first asked for. Used by collective calls.
  std::optional<std::string> no_ll128_reasons[max_teams];

 private:
  std::atomic<std::uint32_t> captured_{0};  ///< teams of kernels in graphs, which run on whatever stream
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::vector<int>> teams_;         ///< those this rank belongs to; world_id: who is left
  std::map<std::uint32_t, std::vector<int>> former_teams_;  ///< those it belonged to last
  std::uint32_t barrier_id_ = 0;                            ///< whose state the world's barrier uses
  std::uint32_t retired_ids_ = 0;
};

}  // namespace beeline
