// SPDX-License-Identifier: Apache-2.0
// The breadth-first search: the generator, the statistics, the check of trees, and every method compared with the
// serial reference; a rank that dies, and a rank that does not come.

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>

#include "measure.hpp"
#include "memory.hpp"
#include "serial.hpp"
#include "statistics.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/killings.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"
#include "validate.hpp"

namespace breadth_first {

namespace {

using beeline::Status;
using beeline_test::check_error;
using beeline_test::WorldKind;

constexpr int scale = least_scale;

TEST(Random, SkipsAsManyNumbersAsItSays) {
  Random state = seeded(2, 3);
  const Random start = state;
  for (int i = 0; i < 1000; ++i) state.next();
  const Random skipped = skip_of(3, 125).from(start), twice = both(skip_of(0, 300), skip_of(2, 175)).from(start);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(state.last[i], skipped.last[i]);
    EXPECT_EQ(state.last[i], twice.last[i]);
  }
}

/// Computed from the recurrence and the rules of the official program with Python's integers.
TEST(Kronecker, MakesTheEdgesOfTheOfficialProgram) {
  const auto edge_of = [](int size, std::uint64_t number) {
    const Kronecker graph = make_kronecker(size);
    return graph.edge(graph.state_of(number));
  };
  EXPECT_EQ(edge_of(10, 0), (Edge{299, 797}));
  EXPECT_EQ(edge_of(10, 1), (Edge{684, 861}));
  EXPECT_EQ(edge_of(10, 16383), (Edge{206, 55}));
  EXPECT_EQ(edge_of(20, 12345678), (Edge{880440, 982429}));
  EXPECT_EQ(edge_of(26, 1073741823), (Edge{22527560, 14637612}));
}

TEST(Kronecker, ChoosesTheRootsOfTheOfficialProgram) {
  const Kronecker graph = make_kronecker(20);
  const auto roots = choose_roots(graph, 5, [](std::uint32_t vertex) { return vertex != 225712; });
  EXPECT_EQ(roots, (std::vector<std::uint32_t>{469580, 219786, 129031, 989678, 404994}));
  // Each root once, and no more than there are.
  const Kronecker small = make_kronecker(4);
  const auto all = choose_roots(small, 64, [](std::uint32_t) { return true; });
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size());
  EXPECT_LE(all.size(), 16u);
}

TEST(Order, SortsByDegreeAndDealsVerticesToRanks) {
  const Order order = order_of({0, 5, 1, 7, 0, 5}, 2);
  EXPECT_EQ(order.vertices, 4u);
  EXPECT_EQ(order.entries, 18u);
  EXPECT_EQ(order.per_rank, 128u);
  EXPECT_EQ(order.positions, (std::vector<std::uint32_t>{no_vertex, 128, 129, 0, no_vertex, 1}));
  EXPECT_EQ(order.labels[0], 3u);
  EXPECT_EQ(order.labels[129], 2u);
  EXPECT_EQ(order.labels[2], no_vertex);
}

TEST(Statistics, AreThoseOfGraph500) {
  const Statistics one = statistics_of({4, 1, 3, 2, 10});
  EXPECT_DOUBLE_EQ(one.minimum, 1);
  EXPECT_DOUBLE_EQ(one.first_quartile, 2);
  EXPECT_DOUBLE_EQ(one.median, 3);
  EXPECT_DOUBLE_EQ(one.third_quartile, 4);
  EXPECT_DOUBLE_EQ(one.mean, 4);
  EXPECT_DOUBLE_EQ(one.deviation, std::sqrt(50.0 / 4));
  const Statistics rates = rates_of({1, 3}, {10, 10});
  EXPECT_DOUBLE_EQ(rates.mean, 5);  // harmonic: of 10 and 10 / 3
  EXPECT_DOUBLE_EQ(rates.maximum, 10);
  EXPECT_DOUBLE_EQ(rates.minimum, 10.0 / 3);
  EXPECT_DOUBLE_EQ(statistics_of({7}).deviation, 0);
  EXPECT_DOUBLE_EQ(rates_of({2}, {8}).mean, 4);
}

beeline::Config config_on(const std::string& device, int ranks) {
  beeline::Config config = beeline_test::test_config(device);
  config.size = ranks;
  fit(config, scale, true, apps::machine_for(device));
  return config;
}

/// Searches by all methods from some roots, and compares with the serial reference.
void search_all(beeline::World& world) {
  Graph graph(world, scale, {.of_block = 16, .of_grid = 64});
  TreeCheck check(graph);
  const Serial serial(graph.kronecker());
  const auto roots = choose_roots(graph.kronecker(), 4, [&](std::uint32_t root) { return graph.has_edges(root); });
  for (const MethodInfo& info : methods()) {
    const std::unique_ptr<Method> method = info.make(graph);
    for (const std::uint32_t root : roots) {
      const Course course = method->search(graph.order().positions[root]);
      graph.name_parents();
      BEELINE_CHECK_EQ(std::string(), check.check(root).text());
      const std::vector<std::int32_t> levels = check.levels(), expected = serial.levels(root);
      BEELINE_CHECK(levels == expected);
      BEELINE_CHECK_EQ(static_cast<std::uint64_t>(*std::ranges::max_element(levels)) + 1, course.levels);
      BEELINE_CHECK_EQ(check.edges(), graph.edges_of_tree());
      BEELINE_CHECK(course.exchange_ns <= course.search_ns);
    }
  }
}

struct SearchCase {
  int ranks;
  const char* device;
};
std::ostream& operator<<(std::ostream& out, const SearchCase& c) { return out << c.ranks << " ranks on " << c.device; }

class BreadthFirst : public testing::TestWithParam<SearchCase> {};

TEST_P(BreadthFirst, FindsTheLevelsOfTheSerialSearch) {
  const SearchCase& c = GetParam();
  if (const std::string why = beeline_test::missing_gpus(c.device, c.ranks); !why.empty()) GTEST_SKIP() << why;
  beeline_test::expect_all_passed(
      beeline_test::run_ranks(WorldKind::threads, c.ranks, search_all, config_on(c.device, c.ranks)));
}

INSTANTIATE_TEST_SUITE_P(Host, BreadthFirst,
                         testing::Values(SearchCase{1, "cpu"}, SearchCase{2, "cpu"}, SearchCase{3, "cpu"}));
INSTANTIATE_TEST_SUITE_P(Gpu, BreadthFirst,
                         testing::Values(SearchCase{1, "auto"}, SearchCase{2, "auto"}, SearchCase{2, "cuda:0"},
                                         SearchCase{4, "auto"}));

TEST(BreadthFirstAcrossNodes, FindsTheLevelsOfTheSerialSearch) {
  SKIP_WITHOUT_UCX();
  beeline::Config config = beeline_test::split_config();
  config.size = 4;
  fit(config, scale, true, apps::machine_for("cpu"));
  beeline_test::expect_all_passed(beeline_test::run_ranks(WorldKind::processes, 4, search_all, config));
}

/// Each change of a right tree breaks a rule.
TEST(TreeCheckTest, NamesTheRule) {
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      WorldKind::threads, 1,
      [](beeline::World& world) {
        Graph graph(world, scale);
        TreeCheck check(graph);
        const Serial serial(graph.kronecker());
        const std::uint32_t root = choose_roots(graph.kronecker(), 1, [&](auto v) { return graph.has_edges(v); })[0];
        const auto level = serial.levels(root);
        const auto at_level = [&](std::int32_t wanted) {
          return static_cast<std::uint32_t>(std::ranges::find(level, wanted) - level.begin());
        };
        const auto faults_with = [&](std::uint32_t vertex, std::uint32_t parent) {
          const std::unique_ptr<Method> method = bitmap().make(graph);
          static_cast<void>(method->search(graph.order().positions[root]));
          graph.name_parents();
          world.copy(graph.parents().data() + graph.order().positions[vertex], &parent, sizeof parent);
          return check.check(root);
        };
        const std::uint32_t second = at_level(2), third = at_level(3);
        BEELINE_CHECK(faults_with(second, second).of_rule[0] > 0);       // a cycle
        BEELINE_CHECK(faults_with(root, second).of_rule[0] > 0);         // the root has a parent
        BEELINE_CHECK(faults_with(second, 1u << scale).of_rule[1] > 0);  // no vertex
        BEELINE_CHECK(!faults_with(second, third).none());               // its parent is further from the root
        BEELINE_CHECK(faults_with(third, root).of_rule[4] > 0);          // no such edge
        BEELINE_CHECK(faults_with(second, no_vertex).of_rule[3] > 0);    // left out
        BEELINE_CHECK(faults_with(second, root).text().find("rule 5: 1 vertices without an edge") != std::string::npos);
      },
      config_on("cpu", 1)));
}

/// A tree that is no shortest one: each vertex but the root below the one that a search in depth came from.
TEST(TreeCheckTest, RefusesATreeOfLongPaths) {
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      WorldKind::threads, 1,
      [](beeline::World& world) {
        Graph graph(world, scale);
        TreeCheck check(graph);
        std::vector<std::uint32_t> parents(graph.parents().count(), no_vertex);
        const auto& positions = graph.order().positions;
        std::vector<std::vector<std::uint32_t>> neighbours(positions.size());
        for (std::uint64_t i = 0; i < graph.edge_count(); ++i) {
          neighbours[graph.edges()[i].from].push_back(graph.edges()[i].to);
          neighbours[graph.edges()[i].to].push_back(graph.edges()[i].from);
        }
        const std::uint32_t root = graph.order().labels[0];
        parents[positions[root]] = root;
        for (std::vector<std::uint32_t> path{root}; !path.empty();) {
          auto& rest = neighbours[path.back()];
          if (rest.empty()) {
            path.pop_back();
            continue;
          }
          const std::uint32_t next = rest.back();
          rest.pop_back();
          if (parents[positions[next]] != no_vertex) continue;
          parents[positions[next]] = path.back();
          path.push_back(next);
        }
        world.copy(graph.parents().data(), parents.data(), parents.size() * sizeof parents[0]);
        const Faults faults = check.check(root);
        BEELINE_CHECK(faults.of_rule[2] > 0);
        for (const std::size_t rule : {0u, 1u, 3u, 4u}) BEELINE_CHECK_EQ(std::uint64_t{0}, faults.of_rule[rule]);
      },
      config_on("cpu", 1)));
}

TEST(BreadthFirstInput, AGraphThatDoesNotFitIsRefused) {
  const apps::Machine small{{}, std::size_t{1} << 30};
  beeline::Config config;
  config.size = 3;
  check_error(Status::no_resource, {"a graph of scale 26 on 3 ranks needs", "GiB of host memory", "has 1.0"},
              [&] { fit(config, 26, false, small); });
  EXPECT_NO_THROW(fit(config, least_scale, false, small));
}

TEST(BreadthFirstInput, ARootWithoutEdgesIsRefusedByAllRanks) {
  const Serial serial(make_kronecker(scale));
  std::uint32_t lone = 0;
  while (serial.degree(lone) > 0) ++lone;
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      WorldKind::threads, 2,
      [lone](beeline::World& world) {
        const Options options{.scale = scale, .methods = methods(), .root = lone};
        check_error(Status::invalid_argument,
                    {"--root: vertex " + std::to_string(lone) + " has no edges in the graph of scale 10"},
                    [&] { static_cast<void>(measure(world, options)); });
        const Options many{.scale = scale, .methods = methods(), .roots = 1024, .root = {}};
        check_error(Status::invalid_argument, {"--roots: 1024 roots asked for", "find"},
                    [&] { static_cast<void>(measure(world, many)); });
      },
      config_on("cpu", 2)));
}

class BreadthFirstFault : public testing::TestWithParam<std::size_t> {};

/// One rank leaves the others alone in a search: they end by the deadline. The first to see it aborts the others.
TEST_P(BreadthFirstFault, ARankThatDoesNotComeEndsTheSearchByTheDeadline) {
  beeline::Config config = config_on("cpu", 3);
  config.deadline_ns = 400'000'000;
  const auto outcomes = beeline_test::run_ranks(
      WorldKind::threads, 3,
      [](beeline::World& world) {
        Graph graph(world, scale);
        const std::unique_ptr<Method> method = methods()[GetParam()].make(graph);
        static_cast<void>(method->search(0));
        if (world.rank() == 2) {
          std::this_thread::sleep_for(std::chrono::seconds(1));
          throw beeline_test::CheckFailure("the rank that did not come");
        }
        static_cast<void>(method->search(1));
      },
      config);
  for (const std::size_t rank : {0u, 1u}) {
    EXPECT_NE(outcomes[rank].failure.find("rank 2"), std::string::npos) << outcomes[rank].failure;
    EXPECT_NE(outcomes[rank].failure.find("deadline"), std::string::npos) << outcomes[rank].failure;
  }
}

/// A rank is killed while all search: the others' error names it.
TEST_P(BreadthFirstFault, ARankThatDiesEndsTheSearch) {
  const auto outcomes = beeline_test::run_ranks(
      WorldKind::processes, 3,
      [](beeline::World& world) {
        Graph graph(world, scale);
        const std::unique_ptr<Method> method = methods()[GetParam()].make(graph);
        std::thread killer;
        if (world.rank() == 1)
          killer = std::thread([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            beeline_test::Killings::end_this_process();
          });
        check_error(Status::peer_died, {"rank 1 ended without leaving the world"}, [&] {
          for (;;) static_cast<void>(method->search(0));
        });
        beeline_test::Killings::noticed();
      },
      config_on("cpu", 3));
  beeline_test::Killings::count(false);
  beeline_test::expect_others_passed(1, outcomes);
}

INSTANTIATE_TEST_SUITE_P(Methods, BreadthFirstFault, testing::Range<std::size_t>(0, 4));

}  // namespace

}  // namespace breadth_first
