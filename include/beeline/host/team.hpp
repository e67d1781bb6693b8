// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Teams: ordered subsets of the world with a barrier and an abort of their own.

#include <cstdint>
#include <vector>

#include "beeline/device/context.hpp"

namespace beeline {

class World;

/// This rank's membership of a team, made by `World::make_team`. Pass `context()` to kernels through
/// `LaunchOptions::context`: peers in it are ranks of the team.
class Team {
 public:
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int rank() const { return static_cast<int>(context_.rank); }
  [[nodiscard]] int size() const { return static_cast<int>(context_.size); }
  [[nodiscard]] int world_rank(int rank) const;  ///< throws invalid_argument outside the team
  [[nodiscard]] const Context& context() const { return context_; }
  [[nodiscard]] const Context& host_context() const { return host_context_; }
  /// Whether the team is aborted: by a deadline of its own, or the end of a member. Its members may go on with a new
  /// team.
  [[nodiscard]] bool failed() const;
  /// Collective over the team. Barrier of its CPU threads; orders memory. Throws deadline or aborted.
  void barrier();

 private:
  friend class World;
  Team(World& world, const Context& context, const Context& host_context)
      : world_(world), context_(context), host_context_(host_context) {}
  World& world_;
  Context context_, host_context_;
};

}  // namespace beeline
