// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One rank's part in a run: who takes part, and how the ranks agree on what to do next.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "beeline/host/world.hpp"
#include "harness/options.hpp"

namespace beeline::bench {

/// Ranks 0 and 1 exchange messages; rank 0 keeps the time and prints. Others take part in what is collective.
class Bench {
 public:
  Bench(World& world, const Options& options) : world_(world), options_(options) {}

  [[nodiscard]] World& world() const { return world_; }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] bool leads() const { return world_.rank() == 0; }
  [[nodiscard]] bool paired() const { return world_.rank() < 2; }
  [[nodiscard]] std::uint32_t peer() const { return world_.rank() == 0 ? 1 : 0; }

  /// Collective. Rank 0's value.
  [[nodiscard]] std::uint64_t from_leader(std::uint64_t value) const;
  /// Collective. Everyone's value, by rank.
  [[nodiscard]] std::vector<std::uint64_t> from_all(std::uint64_t value) const;
  /// Collective. The smallest of all ranks' values, so that they choose alike.
  [[nodiscard]] std::uint64_t least(std::uint64_t value) const;
  /// Collective. The largest of all ranks' values at each place; all give as many.
  [[nodiscard]] std::vector<double> slowest(const std::vector<double>& mine) const;
  /// Throws unavailable in worlds of GPU and host ranks, whose grids do not match.
  void require_alike() const;
  /// Throws unreachable if this rank does not reach every other by loads and stores, as in a world on several nodes.
  void require_loads_and_stores() const;
  /// Collective. Whether it is true on every rank.
  [[nodiscard]] bool everywhere(bool mine) const;
  /// Collective. The first rank's error that is not empty, with the rank's number in front; empty if there is none.
  [[nodiscard]] std::string first_error(const std::string& mine) const;
  /// Collective. Calls `work`. Throws what it throws; unavailable on the other ranks, which have what `lacking` says
  /// that another has not.
  void together(const std::function<void()>& work, const char* lacking) const;
  /// Throws what the world knows about a failed wait of a CPU thread of this rank.
  void require_ok(Status status, const char* what) const;
  /// Holds symmetric memory until `let_go`. Freeing is collective, so an exception that passes the owner frees nothing:
  /// a case that throws unavailable after it has allocated would leak its memory.
  void keep(std::shared_ptr<void> allocation) { kept_.push_back(std::move(allocation)); }
  /// Collective. Frees the objects that only this list still owns, in the order of `keep`.
  void let_go();

 private:
  World& world_;
  const Options& options_;
  std::vector<std::shared_ptr<void>> kept_;
};

/// Rank 0 and the ranks that reach it by loads and stores: of a world on several nodes, those of its node.
class NearTeam {
 public:
  /// Collective. The world itself where it has no other ranks, or where rank 1 is not among them: what needs loads and
  /// stores then says why there are none.
  explicit NearTeam(Bench& bench);

  /// Whether this rank is a member.
  [[nodiscard]] bool is_member() const { return team_ != nullptr; }
  /// The team, in which ranks 0 and 1 have these numbers. Only members call it.
  [[nodiscard]] Team& team() const { return *team_; }

 private:
  std::unique_ptr<Team> own_;  ///< nullptr: the team is the world's, or another rank's
  Team* team_;
};

}  // namespace beeline::bench
