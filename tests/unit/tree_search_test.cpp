// SPDX-License-Identifier: Apache-2.0
// The tree search: the tree itself, and every method compared with the serial search. Ranks are threads.

#include <gtest/gtest.h>

#include "method.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace tree_search {

namespace {

using beeline::Status;
using beeline_test::check_error;

TEST(Tree, HasAboutTheNodesAskedFor) {
  std::uint64_t nodes = 0;
  constexpr std::uint64_t trees = 20, expected = 40'000;
  for (std::uint64_t seed = 0; seed < trees; ++seed) {
    const Counts counts = serial_search(make_tree(expected, seed));
    EXPECT_EQ(counts.nodes % 8, 2001 % 8);  // the root, its children, and eight per parent
    EXPECT_LT(counts.leaves, counts.nodes);
    EXPECT_GT(counts.deepest, 20u);
    nodes += counts.nodes;
  }
  EXPECT_NEAR(static_cast<double>(nodes) / trees, expected, expected / 10);
}

TEST(Tree, OtherSizesAreRefused) {
  for (const std::uint64_t bad : {std::uint64_t{0}, std::uint64_t{3999}, std::uint64_t{10'000'000'001}})
    check_error(Status::invalid_argument,
                {"--nodes: " + std::to_string(bad) + " is no size of a tree", "4000 to 10000000000"},
                [&] { static_cast<void>(make_tree(bad, 1)); });
}

struct SearchCase {
  int ranks;
  const char* device;
};
std::ostream& operator<<(std::ostream& out, const SearchCase& c) { return out << c.ranks << " ranks on " << c.device; }

class TreeSearch : public testing::TestWithParam<SearchCase> {};

TEST_P(TreeSearch, CountsAsTheSerialSearchDoes) {
  const SearchCase& c = GetParam();
  if (const std::string why = beeline_test::missing_gpus(c.device, c.ranks); !why.empty()) GTEST_SKIP() << why;
  beeline::Config config = beeline_test::test_config();
  config.heap_bytes = task_heap_bytes(c.ranks, std::string(c.device) != "cpu") + bulk_heap_bytes();
  config.slot_shift = 32, config.device = c.device;
  const Tree tree = make_tree(50'000, 7);
  const Counts expected = serial_search(tree);
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      beeline_test::WorldKind::threads, c.ranks,
      [&](beeline::World& world) {
        Problem problem(world, tree);
        for (const MethodInfo& info : methods()) {
          const std::unique_ptr<Method> method = info.make(problem);
          for (int round = 0; round < 3; ++round) {
            method->search();
            const Counts counts = problem.take_counts();
            EXPECT_EQ(counts.nodes, expected.nodes) << info.name;
            EXPECT_EQ(counts.leaves, expected.leaves) << info.name;
            EXPECT_EQ(counts.deepest, expected.deepest) << info.name;
          }
        }
      },
      config));
}

INSTANTIATE_TEST_SUITE_P(Host, TreeSearch,
                         testing::Values(SearchCase{1, "cpu"}, SearchCase{2, "cpu"}, SearchCase{3, "cpu"}));
INSTANTIATE_TEST_SUITE_P(Gpu, TreeSearch,
                         testing::Values(SearchCase{1, "auto"}, SearchCase{2, "auto"}, SearchCase{2, "cuda:0"}));

}  // namespace

}  // namespace tree_search
