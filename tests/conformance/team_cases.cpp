// SPDX-License-Identifier: Apache-2.0
// Teams: barriers, puts and packets among some of the ranks, while another team does the same.
#include <algorithm>
#include <memory>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::team_cases {

namespace {

using namespace beeline;

struct TeamArguments {
  PacketChannel channel;
  std::uint64_t* board;    ///< [max_ranks] word of each member, by team rank
  std::uint64_t* signals;  ///< [max_ranks] by sender's team rank
  std::uint64_t* echoes;   ///< [max_ranks] packets received, by sender's team rank
  std::uint32_t rounds, size;
};

BEELINE_HOST_DEVICE inline std::uint64_t team_word(std::uint32_t world_rank, std::uint64_t round) {
  return (std::uint64_t{world_rank} << 32) + round;
}

template <GroupKind kind>
struct TeamKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, TeamArguments a) const {
    const auto group = group_of<kind>(grid);
    if (place_of<kind>(grid).index != 0) return;
    BEELINE_DEVICE_CHECK_EQ(report, a.size, ctx.size);
    const std::uint32_t next = (ctx.rank + 1) % ctx.size, previous = (ctx.rank + ctx.size - 1) % ctx.size;
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      const std::uint64_t word = team_word(ctx.world_rank(ctx.rank), round);
      if (group.thread_rank() == 0)
        for (std::uint32_t peer = 0; peer < ctx.size; ++peer) put_value(ctx, &a.board[ctx.rank], word, peer);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier(group, ctx));
      for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
        BEELINE_DEVICE_CHECK_EQ(report, team_word(ctx.world_rank(peer), round),
                                *static_cast<volatile std::uint64_t*>(&a.board[peer]));
      signal(group, ctx, &a.signals[ctx.rank], round, next);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              wait(group, ctx, &a.signals[previous], Compare::equal, round, previous));
      PacketPort out(group, ctx, a.channel, next);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, out.send(&word, sizeof word));
      PacketPort in(group, ctx, a.channel, previous);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, in.receive(&a.echoes[previous], sizeof word));
      BEELINE_DEVICE_CHECK_EQ(report, team_word(ctx.world_rank(previous), round), a.echoes[previous]);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier(group, ctx));  // the board may be overwritten
    }
  }
};

template <GroupKind kind>
void run_in_team(RankTest& test, Team& team, const TeamArguments& arguments) {
  test.run(team, test.shape(1, true), TeamKernel<kind>{}, arguments,
           join("a team of ", team.size(), ", ", name(kind), " groups"));
  team.barrier();
}

/// Splits the world by `part_of(rank)`; ranks with -1 are in no team.
template <class PartOf>
void split_world(RankTest& test, PartOf part_of) {
  World& world = test.world();
  std::vector<int> members;
  const int mine = part_of(test.rank());
  for (int rank = 0; rank < test.size(); ++rank)
    if (mine >= 0 && part_of(rank) == mine) members.push_back(rank);
  const std::unique_ptr<Team> team = world.make_team(members);
  BEELINE_CHECK_EQ(mine >= 0, team != nullptr);
  if (team) {
    const PacketRings rings(*team, 64, 4);
    const SymmetricArray<std::uint64_t> words(*team, 3 * max_ranks, test.common_heap());
    BEELINE_CHECK_EQ(static_cast<int>(members.size()), team->size());
    for (int rank = 0; rank < team->size(); ++rank)
      BEELINE_CHECK_EQ(members[static_cast<std::size_t>(rank)], team->world_rank(rank));
    BEELINE_CHECK_EQ(test.rank(), team->world_rank(team->rank()));
    const TeamArguments arguments{rings.channel(),
                                  words.data(),
                                  words.data() + max_ranks,
                                  words.data() + 2 * max_ranks,
                                  under_thread_sanitizer ? 5u : 30u,
                                  static_cast<std::uint32_t>(team->size())};
    run_in_team<GroupKind::thread>(test, *team, arguments);
  }
}

BEELINE_CASE(team, teams_of_even_and_odd_ranks, 2) {
  for (int i = 0; i < 3; ++i) split_world(test, [](int rank) { return rank % 2; });
}

BEELINE_CASE(team, a_team_without_the_first_rank, 2) {
  split_world(test, [](int rank) { return rank == 0 ? -1 : 0; });
}

BEELINE_CASE(team, a_team_of_all_by_every_group, 1) {
  World& world = test.world();
  std::vector<int> everyone;
  for (int rank = 0; rank < test.size(); ++rank) everyone.push_back(rank);
  const std::unique_ptr<Team> team = world.make_team(everyone);
  for_each_group_kind(world, [&]<GroupKind kind>() {
    const PacketRings rings(world, 64, 4);
    const SymmetricArray<std::uint64_t> words(world, 3 * max_ranks, test.common_heap());
    run_in_team<kind>(test, *team,
                      {rings.channel(), words.data(), words.data() + max_ranks, words.data() + 2 * max_ranks, 10,
                       static_cast<std::uint32_t>(test.size())});
  });
}

}  // namespace

}  // namespace beeline_test::team_cases
