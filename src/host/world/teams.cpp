// SPDX-License-Identifier: Apache-2.0
#include "host/world/teams.hpp"

namespace beeline {

std::vector<int> Teams::members(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = teams_.find(id);
  return found == teams_.end() ? std::vector<int>{} : found->second;
}

bool Teams::holds(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  return teams_.contains(id);
}

TeamSet Teams::living() const {
  const std::lock_guard lock(mutex_);
  TeamSet living = 0;
  for (const auto& [id, ranks] : teams_) living |= team_set(id);
  return living;
}

void Teams::open(std::uint32_t id, const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  teams_[id] = ranks;
  former_teams_.erase(id);
  no_ll128_reasons[id].reset();
}

void Teams::close(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  if (auto team = teams_.extract(id)) former_teams_[id] = std::move(team.mapped());
}

void Teams::set_world(const std::vector<int>& left) {
  const std::lock_guard lock(mutex_);
  teams_[world_id] = left;
}

void Teams::set_barrier_id(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  barrier_id_ = id;
}

TeamSet Teams::concerned_by(Stream& stream) const {
  const std::optional<TeamSet> launched = stream.launched_teams().all();
  if (!launched) return living();
  return ((*launched | captured_) & living()) | (stream.holds_signal_waits() ? world_only : 0);
}

TeamSet Teams::free_ids() const {
  const std::lock_guard lock(mutex_);
  TeamSet taken = retired_ids_ | team_set(world_id) | team_set(barrier_id_);
  for (const auto& [id, ranks] : teams_) taken |= team_set(id);
  return ~taken;
}

}  // namespace beeline
