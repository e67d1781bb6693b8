// SPDX-License-Identifier: Apache-2.0
// Faults while threads of a rank run tasks themselves: the team ends, or the rank that died is named.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>

#include "beeline/beeline.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::task_callers_test {

namespace {

using namespace beeline;

constexpr double deadline_s = 1;

/// Does not return before its team fails.
struct Loop {
  static constexpr const char* name = "loop";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group&, const Context& ctx, const Task&) const {
    while (detail::read_abort_word(ctx) == 0) machine::back_off(10'000, ctx.polling);
  }
};
struct Fail {
  static constexpr const char* name = "fail";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group&, const Context&, const Task&) const {
#if !BEELINE_ON_GPU
    throw Error(Status::internal, "it has met a fault");
#endif
  }
};
using List = TaskList<Loop, Fail>;

/// Posts tasks to rank 1, and runs those that arrive while its queue is full.
template <class Function>
struct PostAndRun {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, TaskChannel channel, TaskRunner<List> runner,
                                      int times) const {
    if (grid.thread_rank() != 0) return;
    for (int i = 0; i < times; ++i)
      if (post_task(Thread{}, ctx, channel, task_of<List, Function>({}, 1), runner) != Status::ok) return;
    static_cast<void>(quiet(Thread{}, ctx, channel, 1, 0, runner));
  }
};
/// Runs tasks that arrive until the team fails.
struct RunUntilFailure {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, TaskRunner<List> runner) const {
    if (grid.thread_rank() != 0) return;
    const Awaited failure{Operation::task, no_peer, 0, 1};
    static_cast<void>(run_tasks_until(ctx, runner, failure, Timeout::none(), [](std::uint64_t&) { return false; }));
  }
};

/// Runs `body` on two host ranks with a team of both and its tasks, then waits until the team has failed.
void expect_failure(const std::function<void(World&, Team&, Tasks<List>&)>& body) {
  Config config = test_config();
  config.device = "cpu", config.deadline_ns = static_cast<std::int64_t>(deadline_s * 1e9);
  expect_all_passed(run_ranks(
      WorldKind::threads, 2,
      [&body](World& world) {
        const std::unique_ptr<Team> team = world.make_team({0, 1});
        Tasks<List> tasks(*team, {.queues = 1, .depth = 2, .workers = 1});
        tasks.register_function<Loop>({});
        tasks.register_function<Fail>({});
        const Stopwatch watch;
        body(world, *team, tasks);
        while (!team->failed()) {
          BEELINE_CHECK(watch.seconds() < 10 * deadline_s);
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        BEELINE_CHECK(!world.failed());
        world.barrier();
      },
      config));
}

/// The worker's own thread ends the team for the caller.
TEST(TaskCallers, ATaskThatFaultsInACallEndsTheTeam) {
  expect_failure([](World& world, Team& team, Tasks<List>& tasks) {
    check_error(Status::aborted, {"rank 1", "function 'fail'", "posted by rank 0", "it has met a fault"}, [&] {
      if (world.rank() == 0)
        launch(team, {.waits = true}, PostAndRun<Fail>{}, tasks.channel(), tasks.runner(), 1);
      else
        launch(team, {.waits = true}, RunUntilFailure{}, tasks.runner());
      try {
        world.synchronize();
      } catch (const Error&) {  // the barrier names the cause
      }
      team.barrier();
    });
  });
}

TEST(TaskCallers, AQueueThatStaysFullEndsByTheDeadline) {
  expect_failure([](World& world, Team& team, Tasks<List>& tasks) {
    if (world.rank() != 0) return;
    const Stopwatch watch;
    try {
      launch(team, {.waits = true}, PostAndRun<Loop>{}, tasks.channel(), tasks.runner(), 4);
      world.synchronize();
      BEELINE_CHECK(false);
    } catch (const Error&) {
      BEELINE_CHECK(watch.seconds() < 5 * deadline_s);
    }
  });
}

/// On one node, and on two.
TEST(TaskCallers, ATargetThatDiesEndsTheWaitOfACaller) {
  if (under_thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer sees one process";
  for (const int nodes : {1, 2}) {
    Config config = split_config(20'000'000'000, "sockets");
    config.split_nodes = nodes;
    expect_others_passed(1, run_ranks(
                                WorldKind::processes, 2,
                                [&](World& world) {
                                  Tasks<List> tasks(world, {.queues = 1, .depth = 4, .workers = 1});
                                  tasks.register_function<Loop>({});
                                  const Stopwatch watch;
                                  if (world.rank() == 1) {
                                    std::this_thread::sleep_for(std::chrono::milliseconds(200));
                                    ::kill(::getpid(), SIGKILL);
                                  }
                                  check_error(Status::peer_died, {"rank 1"}, [&] {
                                    launch(world, {.waits = true}, PostAndRun<Loop>{}, tasks.channel(), tasks.runner(),
                                           10);
                                    world.synchronize();
                                    world.barrier();
                                  });
                                  BEELINE_CHECK(watch.seconds() < 10);
                                },
                                config));
  }
}

}  // namespace

}  // namespace beeline_test::task_callers_test
