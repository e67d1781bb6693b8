// SPDX-License-Identifier: Apache-2.0
// Ranks that run job after job: a failure ends all of them, a skipped job is reported, and nothing hangs.
#include "tests/support/standing_ranks.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <stdexcept>
#include <string>
namespace beeline_test {

namespace {

using beeline::Config;
using beeline::World;

Config host_config() {
  Config config = test_config();
  config.device = "cpu";
  return config;
}

class Standing : public ::testing::TestWithParam<WorldKind> {
 protected:
  void SetUp() override {
    if (under_thread_sanitizer && GetParam() == WorldKind::processes)
      GTEST_SKIP() << "ThreadSanitizer sees one process";
  }
};

/// Each job allocates memory after that of earlier jobs, which is still held.
TEST_P(Standing, RanksDoAllJobsInOneWorld) {
  StandingRanks ranks(GetParam(), 3, host_config(), [](World& world, int) {
    auto* const mine = static_cast<std::byte*>(world.allocate(1000));
    return std::to_string(world.at(mine, 0) - world.context().range);
  });
  long before = -1;
  for (int number = 1; number < 5; ++number) {
    const StandingRanks::Result result = ranks.run(number);
    expect_all_passed(result.outcomes);
    ASSERT_FALSE(result.skipped.empty());
    EXPECT_LT(before, std::stol(result.skipped));
    before = std::stol(result.skipped);
  }
  EXPECT_FALSE(ranks.ended());
  expect_all_passed(ranks.end());
  EXPECT_TRUE(ranks.ended());
}

TEST_P(Standing, RanksEndWhenOneFails) {
  StandingRanks ranks(GetParam(), 3, host_config(), [](World& world, int number) -> std::string {
    if (number == 7 && world.rank() == 1) throw std::runtime_error("seven is too much");
    return {};
  });
  expect_all_passed(ranks.run(6).outcomes);
  const StandingRanks::Result result = ranks.run(7);
  ASSERT_EQ(3u, result.outcomes.size());
  for (const RankOutcome& outcome : result.outcomes) {
    EXPECT_FALSE(outcome.passed());
    EXPECT_NE(std::string::npos, outcome.failure.find("seven is too much")) << outcome.failure;
  }
  EXPECT_TRUE(ranks.ended());
}

TEST_P(Standing, RanksEndWhenOneFailsBehindTheOthers) {
  StandingRanks ranks(GetParam(), 2, host_config(), [](World& world, int) -> std::string {
    world.barrier();
    if (world.rank() == 1) world.abort("too late");
    return {};
  });
  const StandingRanks::Result result = ranks.run(0);
  EXPECT_TRUE(ranks.ended());
  EXPECT_FALSE(result.outcomes[1].passed());
}

TEST_P(Standing, RanksThatDisagreeOnASkipFail) {
  StandingRanks ranks(GetParam(), 2, host_config(),
                      [](World& world, int) -> std::string { return world.rank() == 1 ? "no time" : ""; });
  const StandingRanks::Result result = ranks.run(0);
  EXPECT_TRUE(result.outcomes[0].passed());
  EXPECT_NE(std::string::npos, result.outcomes[1].failure.find("skipped by some ranks only: here \"no time\""));
}

TEST_P(Standing, RanksWithoutAWorldSayWhy) {
  Config config = host_config();
  config.device = "no such device";
  StandingRanks ranks(GetParam(), 2, config, [](World&, int) -> std::string { return {}; });
  for (const RankOutcome& outcome : ranks.run(0).outcomes)
    EXPECT_NE(std::string::npos, outcome.failure.find("no such device")) << outcome.failure;
  EXPECT_TRUE(ranks.ended());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Standing, ::testing::Values(WorldKind::threads, WorldKind::processes),
                         [](const auto& info) { return info.param == WorldKind::threads ? "threads" : "processes"; });

TEST(StandingProcesses, MayBeKilled) {
  if (under_thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer sees one process";
  StandingRanks ranks(WorldKind::processes, 3, host_config(), [](World& world, int number) -> std::string {
    if (number == 1 && world.rank() == 2) kill(getpid(), SIGKILL);
    return {};
  });
  expect_all_passed(ranks.run(0).outcomes);
  const StandingRanks::Result result = ranks.run(1);
  EXPECT_EQ(SIGKILL, result.outcomes[2].signal);
  EXPECT_NE(std::string::npos, result.outcomes[0].failure.find("rank 2")) << result.outcomes[0].failure;
  EXPECT_TRUE(ranks.ended());
}

TEST(StandingProcesses, AreKilledAfterTheLimit) {
  if (under_thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer sees one process";
  StandingRanks ranks(WorldKind::processes, 2, host_config(), [](World& world, int number) -> std::string {
    while (number == 1 && world.rank() == 1) pause();
    return {};
  });
  expect_all_passed(ranks.run(0).outcomes);
  EXPECT_EQ(SIGKILL, ranks.run(1, 1).outcomes[1].signal);
  EXPECT_TRUE(ranks.ended());
}

}  // namespace

}  // namespace beeline_test
