// SPDX-License-Identifier: Apache-2.0
// The order of the loads and stores by which posters and an engine share a ring, checked by Relacy.
#include <gtest/gtest.h>

#include "tests/model/command_ring_model.hpp"

namespace beeline {

namespace {

#if BEELINE_HAS_RELACY

TEST(CommandRing, IsRightInEveryExecutionTried) {
  const Verdict verdict = try_command_ring(Bug::none, 300'000);
  EXPECT_TRUE(verdict.is_right) << verdict.report;
}

TEST(CommandRing, WakesAnEngineThatSleeps) {
  const Verdict verdict = try_sleeping_engine(Bug::none, 100'000);
  EXPECT_TRUE(verdict.is_right) << verdict.report;
}

/// A lost wake-up lets the engine wait for ever, which the checker reports.
TEST(CommandRing, ALostWakeUpIsFound) {
  const Verdict verdict = try_sleeping_engine(Bug::divided_exchange, 100'000);
  EXPECT_FALSE(verdict.is_right);
  EXPECT_NE(std::string::npos, verdict.report.find("LIVELOCK")) << verdict.report;
}

class CommandRingWith : public ::testing::TestWithParam<Bug> {};

TEST_P(CommandRingWith, ABugIsFound) {
  const Verdict verdict = try_command_ring(GetParam(), 30'000);
  EXPECT_FALSE(verdict.is_right);
  EXPECT_NE(std::string::npos, verdict.report.find("DATA RACE")) << verdict.report;
}

INSTANTIATE_TEST_SUITE_P(Bugs, CommandRingWith,
                         ::testing::Values(Bug::relaxed_publish, Bug::relaxed_taken, Bug::relaxed_known,
                                           Bug::relaxed_answer, Bug::freed_at_once));

#else

TEST(CommandRing, IsRightInEveryExecutionTried) { GTEST_SKIP() << "no model checker: relacy-dev is not installed"; }

#endif

}  // namespace

}  // namespace beeline
