// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What kernels and CPU threads of a rank get to know of a team.

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

/// Makes the contexts of a rank's teams, and has those of the world.
class Contexts {
 public:
  /// All references outlive it.
  Contexts(const Config& config, const Membership& membership, const MemoryMap& memory, const Routes& routes);

  /// Of a team of world ranks, with this rank in it.
  [[nodiscard]] Context make(std::uint32_t team, const std::vector<int>& ranks, bool for_host) const;
  /// The world's, of CPU threads.
  [[nodiscard]] const Context& host() const { return host_; }
  /// Of the world's barrier: as `host`, among the ranks that are left.
  [[nodiscard]] const Context& barrier() const { return barrier_; }
  /// What the barriers of a team's CPU threads go by.
  [[nodiscard]] const Context& barrier_of(const Team& team) const {
    return team.context().team == Teams::world_id ? barrier_ : team.host_context();
  }
  /// The world's barrier goes on among `left`, with the state of the team `id`.
  void regroup(std::uint32_t id, const std::vector<int>& left);

 private:
  /// `Context::guarded_offsets` of this rank's kernels, in a team that mixes kinds or not.
  [[nodiscard]] std::uint64_t guarded_offsets(bool mixed) const;

  const Config& config_;
  const Membership& membership_;
  const MemoryMap& memory_;
  const Routes& routes_;
  Context host_{}, barrier_{};
};

}  // namespace beeline
