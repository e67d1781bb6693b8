// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/team.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "beeline/device/barrier.hpp"
#include "host/profiler_range.hpp"
#include "host/world/exchange.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

/// A rank's proposal: the team that it shall belong to, and its free team ids.
struct Proposal {
  TeamSet free_ids = ~TeamSet{0};  // default: of a rank that has failed or left
  std::uint32_t count = 0;
  std::uint64_t hash = 0;  ///< of the world ranks; equal for two teams with probability 2^-64

  [[nodiscard]] bool has_same_team(const Proposal& other) const { return count == other.count && hash == other.hash; }
};

/// A proposal with the members' world ranks.
struct ListedProposal : Proposal {
  std::vector<std::uint16_t> ranks;
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

ListedProposal propose(const std::vector<int>& ranks, TeamSet free_ids) {
  ListedProposal mine{{free_ids, static_cast<std::uint32_t>(ranks.size()), 0xcbf29ce484222325u}, {}};
  for (const int rank : ranks) {
    mine.ranks.push_back(static_cast<std::uint16_t>(rank));
    mine.hash = (mine.hash ^ static_cast<std::uint64_t>(rank)) * 0x100000001b3u;  // FNV-1a
  }
  return mine;
}

std::vector<std::byte> bytes_of(const Proposal& head, const std::vector<std::uint16_t>& ranks) {
  const auto first = std::as_bytes(std::span(&head, 1)), list = std::as_bytes(std::span(ranks));
  std::vector<std::byte> all(first.begin(), first.end());
  all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// The proposals that all ranks have sent by `bytes_of`.
std::vector<ListedProposal> proposals(const std::vector<std::vector<std::byte>>& everyones) {
  std::vector<ListedProposal> all;
  for (const auto& bytes : everyones) {
    ListedProposal& theirs = all.emplace_back();
    if (bytes.size() < sizeof(Proposal)) continue;
    std::memcpy(static_cast<Proposal*>(&theirs), bytes.data(), sizeof(Proposal));
    theirs.ranks.resize((bytes.size() - sizeof(Proposal)) / sizeof(std::uint16_t));
    if (!theirs.ranks.empty())
      std::memcpy(theirs.ranks.data(), bytes.data() + sizeof(Proposal), theirs.ranks.size() * sizeof(std::uint16_t));
  }
  return all;
}

/// Compares all proposals on every rank, so that either all ranks throw or none.
void check_agreement(const std::vector<ListedProposal>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (const std::uint16_t member : all[rank].ranks)
      require(all[member].has_same_team(all[rank]), Status::invalid_argument,
              fmt::format("ranks {} and {} propose different teams", rank, member));
}

/// As above, if only the members of one team have exchanged proposals.
void check_members_agree(const std::vector<ListedProposal>& all, const std::vector<int>& ranks) {
  require(all.size() == ranks.size(), Status::invalid_argument,
          fmt::format("a team of {} ranks: its all-gather gave the bytes of {}", ranks.size(), all.size()));
  for (std::size_t i = 1; i < all.size(); ++i)
    require(all[i].has_same_team(all[0]), Status::invalid_argument,
            fmt::format("ranks {} and {} propose different teams", ranks[0], ranks[i]));
}

std::uint32_t lowest_free_id(const std::vector<ListedProposal>& all) {
  TeamSet free_ids = ~TeamSet{0};
  for (const Proposal& other : all) free_ids &= other.free_ids;
  require(free_ids != 0, Status::no_resource,
          fmt::format("the members are in {} teams together, the most there can be: destroy teams that are not needed",
                      max_teams));
  return static_cast<std::uint32_t>(std::countr_zero(free_ids));
}

[[noreturn]] void refuse_scalar(int rank, const detail::Scalar& mine, int other, bool has_called,
                                const detail::Scalar& theirs) {
  const auto text = [](const detail::Scalar& each) {
    return fmt::format("allreduce({}, {}, 1 value)", name(each.reduction), name(each.type));
  };
  throw Error(Status::invalid_argument,
              fmt::format("rank {} calls {}, rank {} calls {}: members make the same calls in the same order", rank,
                          text(mine), other, has_called ? text(theirs) : "something else"),
              rank);
}

}  // namespace

void World::Implementation::open_team(std::uint32_t id, const std::vector<int>& ranks) {
  failures->clear(id);
  teams->open(id, ranks);
  PaddedWord& held = memory->areas().host_header()->held_teams[id];
  detail::SystemAtomic<std::uint64_t>(held.value).store(1, std::memory_order_relaxed);
  failures->raise_missed_ends(id);
}

void World::Implementation::close_team(std::uint32_t id) {
  teams->close(id);
  // This rank's stores for the team are complete.
  PaddedWord& held = memory->areas().host_header()->held_teams[id];
  detail::SystemAtomic<std::uint64_t>(held.value).store(0, std::memory_order_release);
}

std::unique_ptr<Team> World::make_team(const std::vector<int>& ranks) {
  Implementation& world = *implementation_;
  if (!ranks.empty()) check_members(ranks, *this);
  const ListedProposal mine = propose(ranks, world.teams->free_ids());
  const std::vector<ListedProposal> all = proposals(world.exchange("make_team", bytes_of(mine, mine.ranks)));
  const std::uint32_t id = lowest_free_id(all);
  check_agreement(all);
  if (!ranks.empty()) world.open_team(id, ranks);
  try {
    barrier();
  } catch (...) {
    if (!ranks.empty()) world.close_team(id);
    throw;
  }
  if (ranks.empty()) return nullptr;
  return std::unique_ptr<Team>(
      new Team(*this, world.contexts->make(id, ranks, false), world.contexts->make(id, ranks, true)));
}

std::unique_ptr<Team> make_team_among(World& world, const std::vector<int>& ranks, const MemberAllgather& allgather,
                                      std::int64_t deadline_ns) {
  World::Implementation& implementation = world.implementation();
  const std::int64_t longest_ns = world.config().stream_deadline_ns;
  require(deadline_ns >= 0 && deadline_ns <= longest_ns, Status::invalid_argument,
          fmt::format("a team's deadline of {} s: at most {} s, that of streams (BEELINE_STREAM_DEADLINE_S)",
                      static_cast<double>(deadline_ns) / 1e9, static_cast<double>(longest_ns) / 1e9));
  implementation.failures->check(Teams::world_only);
  check_members(ranks, world);
  const ListedProposal mine =
      propose(ranks, implementation.teams->free_ids_among(ranks, [&](int other, std::uint32_t id) {
        const PaddedWord& held = implementation.memory->areas().host_header(other)->held_teams[id];
        return !implementation.membership->is_local(other) || detail::load_acquired(held.value) != 0;
      }));
  const std::vector<ListedProposal> all = proposals(allgather(bytes_of(mine, {})));
  check_members_agree(all, ranks);
  const std::uint32_t id = lowest_free_id(all);
  implementation.open_team(id, ranks);
  try {
    static_cast<void>(allgather({}));  // no rank enters a barrier before all have cleared its state
  } catch (...) {
    implementation.close_team(id);
    throw;
  }
  const auto context = [&](bool of_host) {
    Context made = implementation.contexts->make(id, ranks, of_host);
    if (deadline_ns != 0) made.deadline_ns = static_cast<std::uint64_t>(deadline_ns);
    return made;
  };
  return std::unique_ptr<Team>(new Team(world, context(false), context(true)));
}

Team::Team(World& world, const Context& context, const Context& host_context)
    : world_(world), context_(context), host_context_(host_context),
      life_(std::make_shared<detail::TeamLife>(this == &world ? nullptr : world.life())) {}

Team::~Team() {
  if (this != &world_ && life_->is_usable()) world_.implementation().close_team(context_.team);
  life_->end();
}

int Team::world_rank(int rank) const {
  require(rank >= 0 && rank < size(), Status::invalid_argument, fmt::format("rank {} of a team of {}", rank, size()));
  return static_cast<int>(context_.world_rank(static_cast<std::uint32_t>(rank)));
}

bool Team::failed() const { return world_.implementation().failures->failed_team(team_set(context_.team)) >= 0; }

void Team::give_up(const std::string& reason) {
  World::Implementation& world = world_.implementation();
  world.process.require();
  world.failures->raise_with_cause(Status::aborted, fmt::format("rank {}: {}", world.rank(), reason),
                                   world.contexts->barrier_of(*this));
  world.failures->notify_kernels();
}

Status Team::barrier(Timeout timeout) {
  const detail::ProfilerRange range("barrier");
  World::Implementation& world = world_.implementation();
  return world.barrier(world.contexts->barrier_of(*this), timeout);
}

std::uint32_t detail::exchange_scalars(Team& team, const Scalar& mine, std::uint64_t* all) {
  World::Implementation& world = team.world().implementation();
  if (!has_reduction(mine.type, mine.reduction))
    throw Error(Status::invalid_argument,
                fmt::format("allreduce: there is no {} of {}", name(mine.reduction), name(mine.type)));
  const Context& among = world.contexts->barrier_of(team);
  world.begin_collective(among);
  const std::uint64_t number = among.sync->entered.value + 1;
  const auto cell_of = [&](std::uint32_t member) -> ScalarCell& {
    return world.memory->areas()
        .host_header(static_cast<int>(among.world_rank(member)))
        ->scalars[among.team][number % 2];
  };
  cell_of(among.rank) = {number, mine};
  static_cast<void>(world.barrier(among, Timeout::none()));
  const auto take = [&](std::uint32_t member, const ScalarCell& theirs) {
    const int other = static_cast<int>(among.world_rank(member));
    if (theirs.number != number || theirs.value.type != mine.type || theirs.value.reduction != mine.reduction)
      refuse_scalar(world.rank(), mine, other, theirs.number == number, theirs.value);
    all[member] = theirs.value.bits;
  };
  if (among.size > max_node_ranks) {
    std::vector<ScalarCell> cells(among.size);
    world.collect_cells(among, std::as_bytes(std::span(&cell_of(among.rank), 1)),
                        reinterpret_cast<std::byte*>(cells.data()));
    for (std::uint32_t member = 0; member < among.size; ++member) take(member, cells[member]);
    return among.size;
  }
  ScalarCell theirs{};
  for (std::uint32_t member = 0; member < among.size; ++member) {
    world.read_from(static_cast<int>(among.world_rank(member)), &theirs, &cell_of(member), sizeof theirs);
    take(member, theirs);
  }
  return among.size;
}

std::vector<std::vector<std::byte>> Team::allgather(std::span<const std::byte> mine) {
  return detail::allgather_in(*this, "allgather", mine);
}

std::vector<std::vector<std::byte>> detail::allgather_in(Team& team, const char* call,
                                                         std::span<const std::byte> mine) {
  World::Implementation& world = team.world().implementation();
  const std::uint32_t id = team.context().team;
  if (id == Teams::world_id) return world.exchange(call, mine);
  require(mine.size() <= Team::max_gathered_bytes, Status::invalid_argument,
          fmt::format("{} bytes to gather in a team: at most {}", mine.size(), Team::max_gathered_bytes));
  world.begin_collective(team.host_context());
  ExchangeCell& own = world.memory->areas().host_header()->cells[id];
  own.bytes = mine.size();
  fmt::format_to_n(own.call, sizeof own.call, "{}{}", call, '\0');
  if (!mine.empty()) std::memcpy(own.data, mine.data(), mine.size());
  team.barrier();
  std::vector<ExchangeCell> cells(static_cast<std::size_t>(team.size()));
  world.collect_cells(world.contexts->barrier_of(team), std::as_bytes(std::span(&own, 1)),
                      reinterpret_cast<std::byte*>(cells.data()));
  std::vector<std::vector<std::byte>> all;
  std::string difference;
  for (int member = 0; member < team.size(); ++member) {
    const ExchangeCell& theirs = cells[static_cast<std::size_t>(member)];
    all.emplace_back(theirs.data, theirs.data + theirs.bytes);
    if (difference.empty() && std::strcmp(theirs.call, call) != 0)
      difference = detail::different_calls(world.rank(), call, team.world_rank(member), theirs.call);
  }
  team.barrier();  // no rank writes its next cell before all have read this one
  require(difference.empty(), Status::invalid_argument, difference);
  return all;
}

}  // namespace beeline
