// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One rank's part in a run: which ranks take part, and how the ranks agree on the next step.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "beeline/host/world.hpp"
#include "harness/options.hpp"

namespace beeline::bench {

/// Ranks 0 and 1 exchange messages; rank 0 times and prints. The other ranks take part in collective calls.
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
  /// Collective. The values of all ranks, in rank order.
  [[nodiscard]] std::vector<std::uint64_t> from_all(std::uint64_t value) const;
  /// Collective. The smallest of all ranks' values, so that all ranks make the same choice.
  [[nodiscard]] std::uint64_t least(std::uint64_t value) const;
  /// Collective. For each index the largest of all ranks' values; every rank passes the same number of values.
  [[nodiscard]] std::vector<double> slowest(const std::vector<double>& mine) const;
  /// Throws unavailable in worlds of GPU and host ranks, whose grids do not match.
  void require_alike() const;
  /// Throws unavailable if the engine of a host rank would have to write to memory of a GPU: rank 0's engine, or, if
  /// both send, that of rank 0 or 1.
  void require_reach_of_engines(bool both_send) const;
  /// Throws unreachable if this rank does not reach every other rank by loads and stores, as in a world on several
  /// nodes.
  void require_loads_and_stores() const;
  /// Collective. Whether `mine` is true on every rank.
  [[nodiscard]] bool everywhere(bool mine) const;
  /// Collective. The first nonempty error in rank order, prefixed with the rank's number; empty if there is none.
  [[nodiscard]] std::string first_error(const std::string& mine) const;
  /// Collective. Calls `work`, and throws what `work` throws. The other ranks throw unavailable: `lacking` says what
  /// the failed rank lacks.
  void together(const std::function<void()>& work, const char* lacking) const;
  /// If a wait of a CPU thread of this rank failed, throws the failure as the world knows it.
  void require_ok(Status status, const char* what) const;
  /// Keeps symmetric memory until `let_go`. Freeing is collective, so an exception that unwinds the owner does not
  /// free: without `keep`, a case that throws unavailable after it has allocated would leak its memory.
  void keep(std::shared_ptr<void> allocation) { kept_.push_back(std::move(allocation)); }
  /// Collective. Frees the objects that only this list still owns, in the order of the `keep` calls.
  void let_go();

 private:
  World& world_;
  const Options& options_;
  std::vector<std::shared_ptr<void>> kept_;
};

/// Rank 0 and the ranks that reach it by loads and stores: in a world on several nodes, the ranks of its node.
class NearTeam {
 public:
  /// Collective. The team is the world itself if its members are all ranks, or if rank 1 would not be a member: then
  /// operations that need loads and stores report why there are none.
  explicit NearTeam(Bench& bench);

  /// Whether this rank is a member.
  [[nodiscard]] bool is_member() const { return team_ != nullptr; }
  /// The team, in which ranks 0 and 1 have the same numbers as in the world. Only members call it.
  [[nodiscard]] Team& team() const { return *team_; }

 private:
  std::unique_ptr<Team> own_;  ///< nullptr: the team is the world, or this rank is no member
  Team* team_;
};

}  // namespace beeline::bench
