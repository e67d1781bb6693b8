// SPDX-License-Identifier: Apache-2.0
// Signals that a wait cannot distinguish from earlier ones: BEELINE_CHECK finds them, and warns of no others.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::repeated_signals_test {

namespace {

using namespace beeline;

/// Makes rounds of a put with a signal between two ranks.
///   repeats  the signal is 1 in each round, and no answer comes in between
void make_rounds(World& world, bool repeats) {
  const SymmetricArray<int> data(world, 1);
  const Signals signals(world, 3);
  std::uint64_t *const arrived = signals.data(), *const answered = signals.data() + 1, *const flag = answered + 1;
  const Context& ctx = world.host_context();
  const Thread thread;
  const std::uint32_t peer = 1 - ctx.rank;
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const std::uint64_t value = repeats ? 1 : round;
    const int number = static_cast<int>(round);
    if (ctx.rank == 0) put_signal(thread, ctx, data.data(), &number, 1, arrived, value, peer);
    for (int waits = 0; waits < 2 && ctx.rank == 1; ++waits)  // a second wait for the same value is right
      BEELINE_CHECK(wait(thread, ctx, arrived, Compare::greater_equal, value, peer) == Status::ok);
    if (repeats) continue;
    // A word that is reset after each wait, and answered.
    if (ctx.rank == 0) signal(thread, ctx, flag, 1, peer);
    if (ctx.rank == 1) {
      std::uint64_t before = 0;
      BEELINE_CHECK(wait(thread, ctx, flag, Compare::equal, 1, peer) == Status::ok);
      BEELINE_CHECK(exchange(ctx, flag, 0, before) == Status::ok);
      signal(thread, ctx, flag, 0, ctx.rank);
      signal(thread, ctx, answered, round, peer);
    } else {
      BEELINE_CHECK(wait(thread, ctx, answered, Compare::equal, round, peer) == Status::ok);
    }
  }
  world.barrier();
  if (repeats) world.stream().write_signal(world.at(arrived, static_cast<int>(peer)), 1);
  world.synchronize();
  world.barrier();
}

TEST(RepeatedSignals, AreReportedOnceWhereAsked) {
  Config config = test_config("cpu");
  const auto warnings = [&](bool repeats) {
    ::testing::internal::CaptureStderr();
    expect_all_passed(run_ranks(
        WorldKind::threads, 2, [&](World& world) { make_rounds(world, repeats); }, config, 60));
    return ::testing::internal::GetCapturedStderr();
  };
  const auto none = std::string::npos;
  EXPECT_EQ(none, warnings(true).find("sets a signal"));
  config.check = true;
  EXPECT_EQ(none, warnings(false).find("sets a signal"));
  const std::string text = warnings(true);
  EXPECT_NE(text.find("rank 0 sets a signal of rank 1 to 1, which it is already (at offset 0x"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("rank 0 sets"), text.rfind("rank 0 sets")) << text;
}

}  // namespace

}  // namespace beeline_test::repeated_signals_test
