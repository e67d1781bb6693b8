// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether a team can be used, for its objects, which may outlive it or be copied into a forked process.

#include <atomic>
#include <cstdint>
#include <memory>

namespace beeline::detail {

/// The life of a team, shared with its objects.
class TeamLife {
 public:
  ///   world  life of the team's world; nullptr if the team is the world
  explicit TeamLife(std::shared_ptr<const TeamLife> world = nullptr);
  void end() noexcept { has_ended_.store(true, std::memory_order_relaxed); }
  /// Whether team and world exist, and this process made them.
  [[nodiscard]] bool is_usable() const noexcept;
  /// Whether this process was forked after the team had been made.
  [[nodiscard]] bool is_forked() const noexcept;

 private:
  const std::shared_ptr<const TeamLife> world_;
  const std::uint32_t fork_depth_;
  std::atomic<bool> has_ended_{false};
};

/// Destroys an object of a team if the team can be used. Otherwise the object is not destroyed: the objects that it
/// refers to no longer exist, and a forked process has neither its threads nor its part in the team.
struct DeleteWithTeam {
  std::shared_ptr<const TeamLife> life;
  template <class T>
  void operator()(T* object) const {
    if (life->is_usable()) delete object;
  }
};

/// Owner of an object of a team.
template <class T>
using TeamOwned = std::unique_ptr<T, DeleteWithTeam>;

}  // namespace beeline::detail
