// SPDX-License-Identifier: Apache-2.0
// Armed operations that are never triggered, triggers without an armed operation, and tags that do not exist: the team
// ends at the deadline, with an error that names tag, count and threshold, and the world continues.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "beeline/beeline.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::triggers_test {

namespace {

using namespace beeline;

constexpr double deadline_s = 1;
constexpr TriggeredBy engines[] = {TriggeredBy::engine, TriggeredBy::device_engine};

struct TriggerKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, TriggerChannel channel, std::uint32_t tag,
                                      std::uint32_t times) const {
    for (std::uint32_t i = 0; i < times; ++i) static_cast<void>(trigger(grid.block(), ctx, channel, tag));
  }
};

void trigger_in_kernel(Team& team, const Triggers& triggers, std::uint32_t tag, std::uint32_t times) {
  launch(team, {}, TriggerKernel{}, triggers.channel(), tag, times);
  team.world().synchronize();
}

class TriggerFaults : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string why;
    if (GetParam() && gpus_here(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  }
  /// Runs `body` on two ranks, each with a team of both whose abort leaves the world alone.
  static void run(const std::function<void(World&, Team&)>& body) {
    run_ranks_of_a_team([&body](World& world, Team& team) {
      body(world, team);
      BEELINE_CHECK(!world.failed());
      world.barrier();
    });
  }
  /// As above, for a body that may end the world.
  static void run_ranks_of_a_team(const std::function<void(World&, Team&)>& body) {
    Config config = test_config();
    config.device = GetParam() ? "cuda:0" : "cpu";
    config.deadline_ns = static_cast<std::int64_t>(deadline_s * 1e9);
    expect_all_passed(run_ranks(
        WorldKind::threads, 2,
        [&body](World& world) {
          const std::unique_ptr<Team> team = world.make_team({0, 1});
          body(world, *team);
        },
        config));
  }
  /// Rank 0 arms an operation whose threshold is not reached: the team ends by the deadline.
  static void check_unreached(World& world, Team& team, Triggers& triggers, std::uint64_t* word) {
    const std::initializer_list<std::string_view> words = {"rank 0", "tag 5", "count 3", "threshold 4", "store"};
    const Stopwatch watch;
    if (world.rank() != 0) {
      await_failure(team);
      return check_error(Status::aborted, words, [&] { team.barrier(); });
    }
    const ArmedOperation armed = triggers.arm(TriggeredOperation::signal(word, 1, 1), {5, 4});
    trigger_in_kernel(team, triggers, 5, 3);
    await_failure(team);
    BEELINE_CHECK(watch.seconds() >= deadline_s);
    check_error(Status::aborted, words, [&] { static_cast<void>(triggers.wait(armed)); });
  }
  /// Checks that waiting streams of `team` end when `aborted` ends.
  static void check_freed(World& world, Team& team, Team& aborted) {
    const SymmetricArray<std::uint64_t> word(team, 1);
    Stopwatch watch;
    {
      Triggers triggers(team, {.by = TriggeredBy::stream});
      triggers.arm(TriggeredOperation::signal(word.data(), 1, 1 - world.rank()),
                   {.tag = 1, .deadline_ns = 1'000'000'000'000});
      world.barrier();
      watch = Stopwatch();
      if (world.rank() == 0) aborted.give_up("enough");
      await_failure(aborted);
    }
    BEELINE_CHECK(watch.seconds() < deadline_s);
  }
  static void await_failure(const Team& team) {
    const Stopwatch watch;
    while (!team.failed()) {
      BEELINE_CHECK(watch.seconds() < 10 * deadline_s);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};

TEST_P(TriggerFaults, AnOperationWhoseThresholdIsNotReached) {
  for (const TriggeredBy by : engines)
    run([by](World& world, Team& team) {
      Triggers triggers(team, {.by = by});
      const SymmetricArray<std::uint64_t> word(team, 1);
      check_unreached(world, team, triggers, word.data());
      if (world.rank() == 0) triggers.trigger(5);
      world.barrier();
      std::uint64_t now = 0;
      world.copy(&now, word.data(), sizeof now);
      BEELINE_CHECK_EQ(0u, now);
    });
}

TEST_P(TriggerFaults, ATriggerThatNothingIsArmedFor) {
  for (const TriggeredBy by : engines)
    run([by](World& world, Team& team) {
      const Triggers triggers(team, {.by = by});
      if (world.rank() == 1) trigger_in_kernel(team, triggers, 9, 2);
      await_failure(team);
      check_error(Status::aborted, {"rank 1", "tag 9", "count 2", "no operation is armed"}, [&] { team.barrier(); });
      world.barrier();
    });
}

/// If a team is aborted by other code, its armed operations never fire, not even those with a longer deadline.
TEST_P(TriggerFaults, AnAbortLeavesWhatIsArmed) {
  for (const TriggeredBy by : engines)
    run([by](World& world, Team& team) {
      const SymmetricArray<std::uint64_t> word(team, 1);
      {
        Triggers triggers(team, {.by = by});
        triggers.arm(TriggeredOperation::signal(word.data(), 1, world.rank()),
                     {.tag = 1, .threshold = 2, .deadline_ns = 1'000'000'000'000});
        trigger_in_kernel(team, triggers, 1, 1);
        world.barrier();
        if (world.rank() == 0) team.give_up("enough");
        await_failure(team);
        check_error(Status::aborted, {"enough"}, [&] { team.barrier(); });
      }
      std::uint64_t now = 1;
      world.copy(&now, word.data(), sizeof now);
      BEELINE_CHECK_EQ(0u, now);
      world.barrier();
    });
}

/// The deadline of the wait is the world's, and passes before that of the operation.
TEST_P(TriggerFaults, AWaitThatEndsBeforeItsOperationNamesIt) {
  run([](World& world, Team& team) {
    Triggers triggers(team);
    const SymmetricArray<std::uint64_t> word(team, 1);
    if (world.rank() == 0) {
      const ArmedOperation armed = triggers.arm(TriggeredOperation::signal(word.data(), 1, 1),
                                                {.tag = 5, .threshold = 4, .deadline_ns = 1ll << 60});
      triggers.trigger(5, 3);
      check_error(Status::deadline, {"rank 0", "tag 5", "count 3", "threshold 4", "store"},
                  [&] { static_cast<void>(triggers.wait(armed)); });
      BEELINE_CHECK(triggers.cancel(armed));
    } else {
      std::this_thread::sleep_for(std::chrono::duration<double>(deadline_s / 2));  // its own deadline passes later
    }
    world.barrier();
  });
}

/// A stream's wait ends with the team; on a GPU its copy ends the wait.
TEST_P(TriggerFaults, AStreamThatWaitsInVain) {
  run([](World& world, Team& team) {
    const SymmetricArray<std::uint64_t> word(team, 1);
    Triggers triggers(team, {.by = TriggeredBy::stream});
    check_unreached(world, team, triggers, word.data());
    if (world.rank() == 0)
      check_error(Status::aborted, {"aborted"}, [&] {
        triggers.arm(TriggeredOperation::signal(word.data(), 1, 1), {5, 9});
      });
    world.barrier();
  });
}

/// An abort by other code, of the team or only of its world, ends waits of streams.
TEST_P(TriggerFaults, AnAbortFreesStreams) {
  run([](World& world, Team& team) {
    check_freed(world, team, team);
    world.barrier();
  });
}

TEST_P(TriggerFaults, AnAbortOfTheWorldFreesStreamsOfItsTeams) {
  run_ranks_of_a_team([](World& world, Team& team) { check_freed(world, team, world); });
}

/// Data that a guard holds back never moves, although the stream drains: neither after the deadline, nor after an abort
/// by other code.
TEST_P(TriggerFaults, AGuardedStreamThatIsReleased) {
  for (const bool aborts : {false, true})
    run([aborts](World& world, Team& team) {
      const SymmetricArray<std::uint64_t> words(team, 3);
      const std::uint64_t one = 1;
      world.copy(words.data() + 1, &one, sizeof one);
      {
        Triggers triggers(team, {.by = TriggeredBy::guarded_stream});
        triggers.arm(
            TriggeredOperation::copy(words.data(), words.data() + 1, sizeof one).and_signal(words.data() + 2, 1),
            {.tag = 5, .threshold = 2});
        team.barrier();
        if (world.rank() == 0) trigger_in_kernel(team, triggers, 5, 1);
        if (aborts && world.rank() == 0) team.give_up("enough");
        await_failure(team);
      }
      for (const std::size_t untouched : {0u, 2u}) {
        std::uint64_t now = 1;
        world.copy(&now, words.data() + untouched, sizeof now);
        BEELINE_CHECK_EQ(0u, now);
      }
      world.barrier();
    });
}

TEST_P(TriggerFaults, ATagThatThereIsNot) {
  run([](World& world, Team& team) {
    Triggers triggers(team, {.tags = 3});
    if (world.rank() == 0)
      check_error(Status::invalid_argument, {"rank 0: trigger", "no tag 3", "0 to 2"},
                  [&] { trigger_in_kernel(team, triggers, 3, 1); });
    await_failure(team);
    world.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(On, TriggerFaults, ::testing::Values(false, true),
                         [](const auto& on) { return on.param ? "gpu" : "cpu"; });

}  // namespace

}  // namespace beeline_test::triggers_test
