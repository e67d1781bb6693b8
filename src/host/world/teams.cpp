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

std::uint32_t Teams::living() const {
  const std::lock_guard lock(mutex_);
  std::uint32_t living = 0;
  for (const auto& [id, ranks] : teams_) living |= 1u << id;
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

std::uint32_t Teams::concerned_by(Stream& stream) const {
  const std::optional<std::uint32_t> launched = stream.launched_teams().all();
  if (!launched) return living();
  return ((*launched | captured_) & living()) | (stream.holds_signal_waits() ? world_only : 0);
}

std::uint32_t Teams::free_ids() const {
  const std::lock_guard lock(mutex_);
  std::uint32_t taken = retired_ids_ | 1u << world_id | 1u << barrier_id_;
  for (const auto& [id, ranks] : teams_) taken |= 1u << id;
  return ~taken;
}

}  // namespace beeline
