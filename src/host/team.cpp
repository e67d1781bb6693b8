// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/team.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "beeline/device/barrier.hpp"
#include "beeline/device/group.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

/// What a rank proposes: the team that it is to belong to, and the team ids that it has free.
struct Proposal {
  std::uint32_t count = 0;
  std::uint32_t free_ids = 0;
  std::uint8_t ranks[max_ranks] = {};
};

void check_members(const std::vector<int>& ranks, const World& world) {
  const int rank = world.rank(), size = world.size();
  const std::vector<RankHealth> health = world.health();
  const std::string text = fmt::format("team [{}]", fmt::join(ranks, ", "));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    require(ranks[i] >= 0 && ranks[i] < size, Status::invalid_argument,
            fmt::format("{}: no rank {} in a world of {}", text, ranks[i], size));
    const RankHealth& theirs = health[static_cast<std::size_t>(ranks[i])];
    require(theirs.state == RankState::healthy, Status::peer_died,
            fmt::format("{}: rank {} ended: {}", text, ranks[i],
                        theirs.state == RankState::left ? "it has left the world" : theirs.reason));
    require(i == 0 || ranks[i - 1] < ranks[i], Status::invalid_argument, text + ": ranks must ascend");
  }
  require(std::find(ranks.begin(), ranks.end(), rank) != ranks.end(), Status::invalid_argument,
          fmt::format("{} does not hold rank {}, which asks for it: pass no ranks to stay outside", text, rank));
}

std::vector<Proposal> exchange(World& world, const Proposal& mine) {
  std::vector<Proposal> all;
  for (const auto& bytes : world.allgather(std::as_bytes(std::span(&mine, 1)))) {
    Proposal& theirs = all.emplace_back(Proposal{.free_ids = ~0u});  // of a rank that has failed or left
    if (bytes.size() == sizeof theirs) std::memcpy(&theirs, bytes.data(), sizeof theirs);
  }
  return all;
}

/// Every rank looks at every proposal, so that all throw or none does.
void check_agreement(const std::vector<Proposal>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (std::uint32_t i = 0; i < all[rank].count; ++i) {
      const Proposal& theirs = all[all[rank].ranks[i]];
      require(theirs.count == all[rank].count && std::memcmp(theirs.ranks, all[rank].ranks, theirs.count) == 0,
              Status::invalid_argument,
              fmt::format("ranks {} and {} propose different teams", rank, all[rank].ranks[i]));
    }
}

}  // namespace

std::unique_ptr<Team> World::make_team(const std::vector<int>& ranks) {
  Implementation& world = *implementation_;
  if (!ranks.empty()) check_members(ranks, *this);
  Proposal mine{};
  mine.count = static_cast<std::uint32_t>(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) mine.ranks[i] = static_cast<std::uint8_t>(ranks[i]);
  mine.free_ids = world.free_ids();
  const std::vector<Proposal> all = exchange(*this, mine);
  std::uint32_t free_ids = ~0u;
  for (const Proposal& other : all) free_ids &= other.free_ids;
  require(free_ids != 0, Status::no_resource, fmt::format("{} teams exist", max_teams));
  const auto id = static_cast<std::uint32_t>(__builtin_ctz(free_ids));
  check_agreement(all);
  if (!ranks.empty()) {  // an earlier team's epochs are forgotten before any member enters the first barrier
    world.clear_team(id);
    {
      const std::lock_guard lock(world.team_mutex);
      world.teams[id] = ranks;
    }
    world.raise_missed_ends(id);
  }
  try {
    barrier();
  } catch (...) {
    const std::lock_guard lock(world.team_mutex);
    if (!ranks.empty()) world.teams.erase(id);
    throw;
  }
  if (ranks.empty()) return nullptr;
  return std::unique_ptr<Team>(
      new Team(*this, world.make_context(id, ranks, false), world.make_context(id, ranks, true)));
}

Team::~Team() {
  World::Implementation& world = world_.implementation();
  const std::lock_guard lock(world.team_mutex);
  world.teams.erase(context_.team);
}

int Team::world_rank(int rank) const {
  require(rank >= 0 && rank < size(), Status::invalid_argument, fmt::format("rank {} of a team of {}", rank, size()));
  return static_cast<int>(context_.world_rank(static_cast<std::uint32_t>(rank)));
}

bool Team::failed() const { return world_.implementation().failed_team(1u << context_.team) >= 0; }

void Team::barrier() {
  world_.implementation().check(1u << context_.team);  // the others may have entered before it failed: that is none
  const Status status = beeline::barrier(Thread{}, host_context_);
  if (status != Status::ok) world_.implementation().fail(status, context_.team);
}

}  // namespace beeline
