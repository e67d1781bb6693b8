// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `beeline.Team`: some ranks of a world.

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "beeline/host/team.hpp"
#include "joined_world.hpp"

namespace beeline::python {

/// Collective. Every member's bytes, by rank; runs without Python's lock.
[[nodiscard]] std::vector<nanobind::bytes> gathered(Team& team, const nanobind::bytes& mine);
/// Collective. Combines all members' numbers, an int of 64 bits or a float; runs without Python's lock.
[[nodiscard]] nanobind::object allreduced(Team& team, nanobind::handle value, const std::string& reduction);

/// This rank's membership. The team lives until the last object that refers to it is gone, including channels.
class TeamObject {
 public:
  /// Collective: see `World::make_team`, and, if `allgather` is not None, `make_team_among`. Returns nothing on ranks
  /// outside the team.
  [[nodiscard]] static std::optional<TeamObject> make(const std::shared_ptr<JoinedWorld>& world,
                                                      const std::vector<int>& ranks, const nanobind::object& allgather,
                                                      std::optional<double> deadline_s);

  /// Collective: see `World::survivors`. The team is this object's own.
  [[nodiscard]] static TeamObject survivors(const std::shared_ptr<JoinedWorld>& world,
                                            std::optional<double> deadline_s);

  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return world_; }
  /// Throws invalid_argument when the world was left.
  [[nodiscard]] const std::shared_ptr<Team>& team() const;
  /// The team even if this rank has left the world, for properties that stay known.
  [[nodiscard]] const Team& known() const { return *team_; }
  /// Its members' ranks in the world.
  [[nodiscard]] std::vector<int> ranks() const;

 private:
  TeamObject(std::shared_ptr<JoinedWorld> world, std::unique_ptr<Team> team)
      : world_(std::move(world)), team_(std::move(team)) {}

  std::shared_ptr<JoinedWorld> world_;  // outlives the team
  std::shared_ptr<Team> team_;
};

}  // namespace beeline::python
