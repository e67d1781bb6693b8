// SPDX-License-Identifier: Apache-2.0
// Channels of teams that are created by their members alone, and the transfers that calls report.
#include <span>

#include "tests/conformance/collective_calls.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/conformance/vectors.hpp"

namespace beeline_test::team_channel_cases {

namespace {

using namespace beeline;

constexpr std::size_t count = 1001, bytes = count * sizeof(float);

std::vector<int> every_second(int first, int size) {
  std::vector<int> ranks;
  for (int rank = first; rank < size; rank += 2) ranks.push_back(rank);
  return ranks;
}

/// All-reduces of a team, on vectors in its own memory.
void reduce_in(RankTest& test, Team& team, const std::vector<int>& members, std::uint64_t round) {
  World& world = test.world();
  Collectives collectives(team, small_channel);
  auto* const vector = static_cast<std::byte*>(team.allocate(bytes));
  const VectorKey key{ElementType::float32, Reduction::sum, round};
  for (const Algorithm algorithm : {Algorithm::ll_two_shot, Algorithm::two_shot, Algorithm::across_nodes}) {
    if (!reason_against(team, algorithm).empty()) continue;
    test.write(vector, vector_of(key, test.rank(), count));
    team.barrier();  // in place: every vector is written before it is read
    collectives.allreduce_on_stream(vector, vector, count, key.type, key.reduction, {.algorithm = algorithm});
    world.synchronize();
    check_bytes(reduced_vector(key, members, count), test.read(vector, bytes), name(algorithm));
    const Transfer expected = algorithm == Algorithm::two_shot      ? Transfer::in_place
                              : algorithm == Algorithm::ll_two_shot ? Transfer::packets
                                                                    : Transfer::staged;
    BEELINE_CHECK(expected == collectives.last_transfer());
  }
  team.free(vector);
}

/// Two halves of the world create teams, one more often than the other; the world's memory remains symmetric.
BEELINE_CASE(collectives, teams_made_by_their_members, 1) {
  World& world = test.world();
  const std::vector<int> members = every_second(test.rank() % 2, test.size());
  const std::unique_ptr<Team> met = world.make_team(members);
  const auto allgather = [&](std::span<const std::byte> mine) { return met->allgather(mine); };
  for (std::uint64_t round = 0; round < (test.rank() % 2 == 0 ? 5u : 2u); ++round) {
    const std::unique_ptr<Team> team = make_team_among(world, members, allgather);
    BEELINE_CHECK_EQ(test.rank(), team->world_rank(team->rank()));
    BEELINE_CHECK_EQ(static_cast<int>(members.size()), team->size());
    reduce_in(test, *team, members, round);
  }
  world.barrier();
  const SymmetricArray<std::uint64_t> words(world, 1000), pinned(world, 1000, Heap::pinned);
}

/// Teams of neighbours in a ring: a rank may be in two teams, which all members create in the same order.
BEELINE_CASE(collectives, teams_that_overlap, 3) {
  World& world = test.world();
  const int last = test.size() - 1;
  std::vector<std::unique_ptr<Team>> met, teams;
  std::vector<std::vector<int>> members;
  for (int first = 0; first < last; ++first) {
    const bool is_in = test.rank() == first || test.rank() == first + 1;
    members.push_back({first, first + 1});
    met.push_back(world.make_team(is_in ? members.back() : std::vector<int>{}));
  }
  for (int first = 0; first < last; ++first) {
    Team* const pair = met[static_cast<std::size_t>(first)].get();
    if (pair == nullptr) continue;
    const std::vector<int>& ranks = members[static_cast<std::size_t>(first)];
    teams.push_back(
        make_team_among(world, ranks, [&](std::span<const std::byte> mine) { return pair->allgather(mine); }));
    reduce_in(test, *teams.back(), ranks, static_cast<std::uint64_t>(first));
  }
  const std::byte mine{static_cast<unsigned char>(test.rank())};
  for (const std::unique_ptr<Team>& team : teams) {
    const auto all = team->allgather(std::span(&mine, 1));
    for (int member = 0; member < team->size(); ++member)
      BEELINE_CHECK_EQ(team->world_rank(member), static_cast<int>(all[static_cast<std::size_t>(member)].at(0)));
  }
  world.barrier();
}

BEELINE_CASE(collectives, team_memory_refused, 1) {
  World& world = test.world();
  const std::vector<int> everyone_here = everyone(test.size());
  const std::unique_ptr<Team> team = world.make_team(everyone_here);
  const std::byte much[Team::max_gathered_bytes + 1] = {};
  expect_refused("to gather in a team", [&] { static_cast<void>(team->allgather(much)); });
  expect_refused("no room for", [&] { static_cast<void>(team->allocate(SIZE_MAX / 2)); });
  expect_refused("not allocated", [&] { team->free(&world); });
  const auto meet = [&](std::span<const std::byte> mine) { return world.allgather(mine); };
  expect_refused("does not hold rank", [&] { static_cast<void>(make_team_among(world, {}, meet)); });
}

BEELINE_CASE(collectives, what_team_members_disagree_on_is_refused, 2) {
  World& world = test.world();
  const std::vector<int> everyone_here = everyone(test.size());
  const std::unique_ptr<Team> team = world.make_team(everyone_here);
  const auto different = static_cast<std::size_t>(100 * (test.rank() + 1));
  expect_refused("allocations differ", [&] { static_cast<void>(team->allocate(different)); });
  const auto garbled = [&](std::span<const std::byte> mine) {
    auto all = world.allgather(mine);
    all.back().at(8) = std::byte{63};  // the last entry's first member
    return all;
  };
  expect_refused("propose different teams", [&] { static_cast<void>(make_team_among(world, everyone_here, garbled)); });
  const auto too_few = [](std::span<const std::byte>) { return std::vector<std::vector<std::byte>>(); };
  expect_refused("its all-gather gave", [&] { static_cast<void>(make_team_among(world, everyone_here, too_few)); });
  team->free(team->allocate(100));  // refused memory is free again, symmetrically
}

/// Calls that report how they moved their vectors, which depends on the vectors' addresses and the algorithm.
class ToldCalls {
 public:
  explicit ToldCalls(RankTest& test)
      : test_(test), collectives_(test.world(), small_channel),
        heap_(test.world(), 2 * static_cast<std::size_t>(test.size()) * count) {}

  [[nodiscard]] Collectives& collectives() { return collectives_; }
  [[nodiscard]] float* to() const { return heap_.data(); }
  [[nodiscard]] float* from() const { return heap_.data() + static_cast<std::size_t>(test_.size()) * count; }
  /// An address at a different offset on every rank.
  [[nodiscard]] float* unlike() const { return to() + 4 * test_.rank(); }

  void expect(Transfer transfer, const char* what) {
    test_.world().synchronize();
    BEELINE_CHECK_EQ(join(what, ": ", name(transfer)), join(what, ": ", name(collectives_.last_transfer())));
  }
  void reduce(float* vector, Algorithm algorithm, bool symmetric = false) {
    collectives_.allreduce_on_stream(vector, vector, count, ElementType::float32, Reduction::sum,
                                     {.algorithm = algorithm, .symmetric = symmetric});
  }
  void gather(Algorithm algorithm) {
    collectives_.allgather_on_stream(to(), from(), count, ElementType::float32, {.algorithm = algorithm});
  }
  void reduce_scatter(float* vector, Algorithm algorithm) {
    collectives_.reduce_scatter_on_stream(vector, from(), 16, ElementType::float32, Reduction::sum,
                                          {.algorithm = algorithm});
  }

 private:
  RankTest& test_;
  Collectives collectives_;
  SymmetricArray<float> heap_;
};

BEELINE_CASE(collectives, transfers_by_packets_are_told, 1) {
  test.skip_if(test.on_several_nodes(), ranks_on_several_nodes);
  ToldCalls calls(test);
  calls.expect(Transfer::none, "before any call");
  calls.reduce(calls.to(), Algorithm::ll_one_shot), calls.expect(Transfer::packets, "all-reduce by packets");
  calls.gather(Algorithm::ll), calls.expect(Transfer::packets, "all-gather by packets");
  calls.collectives().barrier_on_stream(), calls.expect(Transfer::packets, "a barrier changes nothing");
  calls.collectives().allreduce_on_stream(nullptr, nullptr, 0, ElementType::float32, Reduction::sum);
  calls.expect(Transfer::none, "nothing to move");
}

BEELINE_CASE(collectives, other_transfers_are_told, 1) {
  test.skip_if(test.on_several_nodes(), ranks_on_several_nodes);
  test.skip_if(test.world().mixed(), ranks_of_both_kinds);
  ToldCalls calls(test);
  calls.reduce(calls.to(), Algorithm::two_shot), calls.expect(Transfer::in_place, "two_shot, symmetric");
  calls.gather(Algorithm::peer), calls.expect(Transfer::in_place, "all-gather by peer");
  calls.reduce(calls.to(), Algorithm::copy_engine), calls.expect(Transfer::staged, "all-reduce by engines");
  calls.reduce(calls.to(), Algorithm::copy_engine, true);
  calls.expect(Transfer::in_place, "all-reduce by engines, asserted symmetric");
  calls.reduce(calls.to(), Algorithm::read), calls.expect(Transfer::staged, "by reading");
  calls.reduce_scatter(calls.to(), Algorithm::bulk), calls.expect(Transfer::staged, "reduce-scatter in bulk");
  calls.reduce_scatter(calls.unlike(), Algorithm::read);
  calls.expect(Transfer::in_place, "reduce-scatter by reading");
}

BEELINE_CASE(collectives, transfers_of_unlike_vectors_are_told, 2) {
  test.skip_if(test.on_several_nodes(), ranks_on_several_nodes);
  test.skip_if(test.world().mixed(), ranks_of_both_kinds);
  ToldCalls calls(test);
  calls.reduce(calls.unlike(), Algorithm::two_shot), calls.expect(Transfer::staged, "two_shot, unlike");
}

}  // namespace

}  // namespace beeline_test::team_channel_cases
