// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Contexts: the descriptions of a team for kernels and CPU threads of a rank.

#include <cstdint>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/device/context.hpp"
#include "beeline/host/team.hpp"
#include "host/world/membership.hpp"
#include "host/world/memory_map.hpp"
#include "host/world/routes.hpp"
#include "host/world/teams.hpp"

namespace beeline {

/// Makes the contexts of a rank's teams, and holds the contexts of the world.
class Contexts {
 public:
  /// All references outlive this object.
  Contexts(const Config& config, const Membership& membership, const MemoryMap& memory, const Routes& routes);

  /// Makes the context of a team that includes this rank. `ranks`: the members' world ranks.
  [[nodiscard]] Context make(std::uint32_t team, const std::vector<int>& ranks, bool for_host) const;
  /// The world's context for CPU threads.
  [[nodiscard]] const Context& host() const { return host_; }
  /// Context of the world's barrier: as `host`, among the remaining ranks.
  [[nodiscard]] const Context& barrier() const { return barrier_; }
  /// Context for barriers of a team's CPU threads.
  [[nodiscard]] const Context& barrier_of(const Team& team) const {
    return team.context().team == Teams::world_id ? barrier_ : team.host_context();
  }
  /// Continues the world's barrier among the ranks `left`, with the state of the team `id`.
  void regroup(std::uint32_t id, const std::vector<int>& left);

 private:
  /// `Context::guarded_offsets` of this rank's kernels. `mixed`: whether the team has both GPU and host ranks.
  [[nodiscard]] std::uint64_t guarded_offsets(bool mixed) const;

  const Config& config_;
  const Membership& membership_;
  const MemoryMap& memory_;
  const Routes& routes_;
  Context host_{}, barrier_{};
};

}  // namespace beeline
