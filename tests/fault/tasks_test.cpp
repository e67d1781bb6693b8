// SPDX-License-Identifier: Apache-2.0
// Tasks that cannot be run are refused by the poster or by the target: the error names both, their team ends, and the
// world continues.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "beeline/beeline.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::tasks_test {

namespace {

using namespace beeline;

constexpr double deadline_s = 1;

struct Number {
  std::uint64_t value;
};
struct Add {
  static constexpr const char* name = "add";
  using Arguments = Number;
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() == 0) *static_cast<std::uint64_t*>(task.object) += task.as<Number>().value;
  }
};
/// Does not return before its team fails.
struct Loop {
  static constexpr const char* name = "loop";
  using Arguments = Number;
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group&, const Context& ctx, const Task&) const {
    while (detail::read_abort_word(ctx) == 0) machine::back_off(10'000, ctx.polling);
  }
};
/// Waits for a free cell in its own queue.
struct Again {
  static constexpr const char* name = "again";
  using Arguments = Number;
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const Task& task) const;
};
/// Whether functions with a fault throw an int, which is no std::exception, instead of an Error.
std::atomic<bool> throws_number = false;
[[noreturn]] void fault() {
  if (throws_number) throw 42;
  throw Error(Status::internal, "it has met a fault");
}
constexpr const char* text_of_number = "an exception of type int, which is not a std::exception";

/// A function that fails on CPUs.
struct Fail {
  static constexpr const char* name = "fail";
  using Arguments = Number;
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group&, const Context&, const Task&) const {
#if !BEELINE_ON_GPU
    fault();
#endif
  }
};
using List = TaskList<Add, Loop, Again, Fail>;
template <class Group>
BEELINE_HOST_DEVICE void Again::operator()(const Group& group, const Context& ctx, const Task& task) const {
  const Number number{1};
  static_cast<void>(post_task(group, ctx, task.channel, task_of<List, Add>(number, task.poster, 1)));
}

/// A kernel that does not return before its team fails, and one that fails on CPUs.
struct LoopAll {
  static constexpr const char* name = "loop_all";
  static constexpr bool is_kernel = true;
  using Arguments = Number;
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context& ctx, const Task&) const {
    while (detail::read_abort_word(ctx) == 0) machine::back_off(10'000, ctx.polling);
  }
};
struct FailAll {
  static constexpr const char* name = "fail_all";
  static constexpr bool is_kernel = true;
  using Arguments = Number;
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context&, const Task&) const {
#if !BEELINE_ON_GPU
    fault();
#endif
  }
};
using Kernels = TaskList<Add, LoopAll, FailAll>;

/// The same function under another name.
struct Subtract : Add {
  static constexpr const char* name = "subtract";
};

struct PostRaw {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, TaskChannel channel, TaskPost post,
                                      std::uint32_t times) const {
    std::byte bytes[max_task_arguments + 16] = {};
    post.arguments = bytes;
    for (std::uint32_t i = 0; i < times; ++i) static_cast<void>(post_task(grid.block(), ctx, channel, post));
  }
};

class TaskFaults : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string why;
    if (GetParam() && gpus_here(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  }
  static Config config() {
    Config config = test_config();
    config.device = GetParam() ? "cuda:0" : "cpu";
    config.deadline_ns = static_cast<std::int64_t>(deadline_s * 1e9);
    return config;
  }
  /// Runs `body` on two ranks with a team of both, whose abort leaves the world alone.
  static void run(const std::function<void(World&, Team&)>& body) {
    expect_all_passed(run_ranks(
        WorldKind::threads, 2,
        [&body](World& world) {
          const std::unique_ptr<Team> team = world.make_team({0, 1});
          body(world, *team);
          BEELINE_CHECK(!world.failed());
          world.barrier();
        },
        config()));
  }
  static void post(Team& team, const TaskQueues& tasks, const TaskPost& what, std::uint32_t times = 1) {
    launch(team, {.threads = 32, .waits = true}, PostRaw{}, tasks.channel(), what, times);
    team.world().synchronize();
  }
  static void await_failure(const Team& team) {
    const Stopwatch watch;
    while (!team.failed()) {
      BEELINE_CHECK(watch.seconds() < 10 * deadline_s);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// Rank 0 posts a task that is refused; the errors of both ranks have these words.
  static void expect_refused(const TaskPost& what, const std::vector<std::string>& words) {
    run([&](World& world, Team& team) {
      const SymmetricArray<std::uint64_t> sum(team, 1);
      Tasks<List> tasks(team, {.queues = 2, .depth = 4, .workers = 2});
      const SymmetricArray<std::byte> buffer(team, tasks.payload_buffer_bytes(32));
      tasks.register_function<Add>({sum.data(), buffer.data(), buffer.bytes(), nullptr});
      tasks.register_function<Again>({});
      if (world.rank() == 0) {
        const auto posts = [&] {
          post(team, tasks, what);
          team.barrier();
        };
        try {
          posts();
          BEELINE_CHECK(false);
        } catch (const Error& error) {
          for (const std::string& word : words) BEELINE_CHECK_CONTAINS(std::string(error.what()), word);
        }
      }
      await_failure(team);
      std::uint64_t now = 1;
      world.copy(&now, sum.data(), sizeof now);
      BEELINE_CHECK_EQ(std::uint64_t{0}, now);
      world.barrier();
    });
  }
  static TaskPost good() {
    TaskPost post;
    post.rank = 1, post.argument_bytes = sizeof(Number);
    return post;
  }
};

TEST_P(TaskFaults, ARankThatThereIsNot) {
  TaskPost post = good();
  post.rank = 2;
  expect_refused(post, {"rank 0", "task", "peer 2 is no rank"});
}
TEST_P(TaskFaults, AQueueThatThereIsNot) {
  TaskPost post = good();
  post.queue = 2;
  expect_refused(post, {"rank 0", "task", "no queue 2"});
}
TEST_P(TaskFaults, AFunctionThatThereIsNot) {
  TaskPost post = good();
  post.function = 4;
  expect_refused(post, {"rank 0", "task", "no function 4"});
}
TEST_P(TaskFaults, TooManyArguments) {
  TaskPost post = good();
  post.argument_bytes = max_task_arguments + 1;
  expect_refused(post, {"rank 0", "task", "257 bytes", "256"});
}
TEST_P(TaskFaults, ArgumentsOfAnotherSize) {
  TaskPost post = good();
  post.argument_bytes = 4;
  expect_refused(post, {"rank 1", "task", "rank 0", "arguments of 4 bytes", "8"});
}
TEST_P(TaskFaults, APayloadThatIsTooLarge) {
  TaskPost post = good();
  post.payload = &post, post.payload_bytes = 33;
  expect_refused(post, {"rank 0", "task", "payload of 33 bytes", "32"});
}
TEST_P(TaskFaults, AFunctionThatIsNotRegistered) {
  TaskPost post = good();
  post.function = List::index_of<Loop>();
  expect_refused(post, {"rank 1", "task", "rank 0", "function 1 is not registered"});
}
TEST_P(TaskFaults, ATaskThatWaitsForItsOwnQueue) {
  TaskPost post = good();
  post.function = List::index_of<Again>(), post.queue = 1;
  expect_refused(post, {"rank 1", "task", "queue 1 waits for a place in queue 1"});
}

/// Memory of a function that a rank no longer registers is not accessed.
TEST_P(TaskFaults, AFunctionThatIsNotRegisteredAnyMore) {
  run([](World& world, Team& team) {
    Tasks<List> tasks(team, {.queues = 2, .depth = 4, .workers = 2});
    {
      const SymmetricArray<std::uint64_t> sum(team, 1);
      tasks.register_function<Add>({sum.data(), nullptr, 0, nullptr});
      if (world.rank() == 0) post(team, tasks, good());
      tasks.quiet();
      std::uint64_t now = 1;
      world.copy(&now, sum.data(), sizeof now);
      BEELINE_CHECK_EQ(std::uint64_t{0}, now);  // arguments of zeros
      tasks.unregister_function(List::index_of<Add>());
    }
    team.barrier();
    if (world.rank() == 0)
      check_error(Status::aborted, {"rank 1", "task", "rank 0", "not registered"}, [&] {
        post(team, tasks, good());
        await_failure(team);
        team.barrier();
      });
    await_failure(team);
    world.barrier();
  });
}

TEST_P(TaskFaults, BadRegistrations) {
  run([](World& world, Team& team) {
    Tasks<List> tasks(team, {.queues = 1, .depth = 4, .workers = 1});
    const SymmetricArray<std::byte> buffer(team, 256);
    std::byte elsewhere[64];
    const auto refused = [&](std::uint32_t function, void* payloads, std::size_t bytes, const char* why) {
      check_error(Status::invalid_argument,
                  {"rank 1 registers function " + std::to_string(function), world.rank() == 1 ? why : ""}, [&] {
                    tasks.register_function(
                        world.rank() == 1 ? function : 0,
                        world.rank() == 1 ? TaskRegistration{nullptr, payloads, bytes, nullptr} : TaskRegistration{});
                  });
      world.barrier();
    };
    refused(4, nullptr, 0, "no function 4");
    refused(0, nullptr, 16, "null address");
    refused(0, buffer.data() + 8, 128, "not aligned");
    refused(0, buffer.data(), 64, "16 bytes for each");
    refused(0, reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(elsewhere) & ~std::uintptr_t{15}), 4096,
            "payloads: 4096 bytes at ");
    check_error(Status::invalid_argument, {"workers"},
                [&] { const Tasks<List> none(team, {.queues = 2, .workers = 3}); });
    check_error(Status::invalid_argument, {"17 workers", "16 on each of 1 multiprocessors"},
                [&] { const Tasks<List> none(team, {.queues = 1, .workers = 17}); });
  });
}

TEST_P(TaskFaults, ListsThatDiffer) {
  run([](World& world, Team& team) {
    check_error(Status::invalid_argument,
                {"rank 0 has", "add, loop, again, fail", "rank 1 has", "subtract, loop, again, fail"}, [&] {
                  if (world.rank() == 0)
                    const Tasks<List> tasks(team);
                  else
                    const Tasks<TaskList<Subtract, Loop, Again, Fail>> tasks(team);
                });
  });
}

TEST_P(TaskFaults, ATaskThatDoesNotReturn) {
  run([](World& world, Team& team) {
    const Stopwatch watch;  // before the set-up, which the other rank may leave first
    Tasks<List> tasks(team, {.queues = 1, .depth = 4, .workers = 1});
    tasks.register_function<Loop>({});
    if (world.rank() == 0) {
      TaskPost what = good();
      what.function = List::index_of<Loop>();
      post(team, tasks, what);
    }
    await_failure(team);
    BEELINE_CHECK(watch.seconds() >= deadline_s);
    check_error(Status::aborted, {"rank 1", "function 'loop'", "posted by rank 0", "has not returned"},
                [&] { team.barrier(); });
    world.barrier();
  });
}

/// The deadline of ranks that wait for a task begins when the task begins.
TEST_P(TaskFaults, AWaitForATaskThatDoesNotReturnNamesIt) {
  run([](World& world, Team& team) {
    Tasks<List> tasks(team, {.queues = 1, .depth = 4, .workers = 1});
    tasks.register_function<Loop>({});
    if (world.rank() == 0) {
      TaskPost what = good();
      what.function = List::index_of<Loop>();
      post(team, tasks, what);
    }
    check_error(Status::aborted, {"rank 1", "function 'loop'", "posted by rank 0", "has not returned"},
                [&] { tasks.quiet(); });
    world.barrier();
  });
}

TEST_P(TaskFaults, ATaskThatFaults) {
  if (GetParam()) GTEST_SKIP() << "a fault of a GPU ends all ranks of its process: GpuFault.NamesAllRanksOfItsProcess";
  for (const bool is_number : {false, true}) {
    throws_number = is_number;
    run([is_number](World& world, Team& team) {
      Tasks<List> tasks(team, {.queues = 1, .depth = 4, .workers = 1});
      tasks.register_function<Fail>({});
      TaskPost what = good();
      what.function = List::index_of<Fail>();
      const char* const text = is_number ? text_of_number : "it has met a fault";
      check_error(Status::aborted, {"rank 1", "function 'fail'", "posted by rank 0", text}, [&] {
        if (world.rank() == 0) post(team, tasks, what);
        await_failure(team);
        team.barrier();
      });
      world.barrier();
    });
  }
}

TEST_P(TaskFaults, AKernelThatIsNotRegistered) {
  run([](World& world, Team& team) {
    Tasks<Kernels> tasks(team, {.queues = 1, .depth = 4, .workers = 1});
    TaskPost what = good();
    what.function = Kernels::index_of<LoopAll>();
    try {
      if (world.rank() == 0) post(team, tasks, what);
      await_failure(team);
      team.barrier();
      BEELINE_CHECK(false);
    } catch (const Error& error) {
      BEELINE_CHECK_CONTAINS(std::string(error.what()), "rank 1");
      BEELINE_CHECK_CONTAINS(std::string(error.what()), "function 1 is not registered");
    }
    await_failure(team);
    world.barrier();
  });
}

/// The error at the deadline names function and poster, although several leases of workers wait for the kernel.
void expect_kernel_does_not_return(World& world, Team& team, KernelStarter by) {
  const Stopwatch watch;  // before the set-up, which the other rank may leave first
  Tasks<Kernels> tasks(team, {.queues = 1, .depth = 4, .workers = 1});
  tasks.register_kernel<LoopAll>({}, {.blocks = 2, .threads = 64, .start = by});
  if (world.rank() == 0) {
    TaskPost what;
    what.rank = 1, what.argument_bytes = sizeof(Number), what.function = Kernels::index_of<LoopAll>();
    launch(team, {.threads = 32, .waits = true}, PostRaw{}, tasks.channel(), what, 2u);
    world.synchronize();
  }
  while (!team.failed()) {
    BEELINE_CHECK(watch.seconds() < 10 * deadline_s);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  BEELINE_CHECK(watch.seconds() >= deadline_s);
  check_error(Status::aborted, {"rank 1", "function 'loop_all'", "posted by rank 0", "has not returned"},
              [&] { team.barrier(); });
  world.barrier();
}
TEST_P(TaskFaults, AKernelThatDoesNotReturn) {
  run([](World& world, Team& team) { expect_kernel_does_not_return(world, team, KernelStarter::any); });
}
TEST_P(TaskFaults, AKernelOfTheEngineThatDoesNotReturn) {
  run([](World& world, Team& team) { expect_kernel_does_not_return(world, team, KernelStarter::engine); });
}

TEST_P(TaskFaults, AKernelThatFaults) {
  if (GetParam()) GTEST_SKIP() << "a fault of a GPU ends all ranks of its process: GpuFault.NamesAllRanksOfItsProcess";
  for (const bool is_number : {false, true}) {
    throws_number = is_number;
    run([is_number](World& world, Team& team) {
      Tasks<Kernels> tasks(team, {.queues = 1, .depth = 4, .workers = 1});
      tasks.register_kernel<FailAll>({}, {.blocks = 2});
      TaskPost what = good();
      what.function = Kernels::index_of<FailAll>();
      const char* const text = is_number ? text_of_number : "it has met a fault";
      check_error(Status::aborted, {"rank 1", "function 'fail_all'", "posted by rank 0", text}, [&] {
        if (world.rank() == 0) post(team, tasks, what);
        await_failure(team);
        team.barrier();
      });
      world.barrier();
    });
  }
}

TEST_P(TaskFaults, BadRegistrationsOfKernels) {
  const bool is_gpu = GetParam();
  run([is_gpu](World& world, Team& team) {
    check_error(Status::invalid_argument, {"9 workers of a list with kernels", "at most 8"},
                [&] { const Tasks<Kernels> none(team, {.queues = 1, .workers = 9}); });
    Tasks<Kernels> tasks(team, {.queues = 1, .depth = 4, .workers = 1});
    const auto why = [&](const char* text, int rank = 1) {
      return std::string(world.rank() == rank ? text : "refused there");
    };
    check_error(Status::invalid_argument, {"rank 0 registers function 1", why("is a kernel", 0)},
                [&] { tasks.register_function<LoopAll>({}); });
    check_error(Status::invalid_argument, {"rank 0 registers function 0", why("is no kernel", 0)},
                [&] { tasks.register_kernel<Add>({}, {}); });
    check_error(Status::invalid_argument, {"rank 1 registers function 1", why("0 blocks")},
                [&] { tasks.register_kernel<LoopAll>({}, {.blocks = world.rank() == 1 ? 0u : 1u}); });
    if (is_gpu)
      check_error(Status::invalid_argument, {"rank 1 registers function 1", why("1025 threads")},
                  [&] { tasks.register_kernel<LoopAll>({}, {.threads = world.rank() == 1 ? 1025u : 32u}); });
    else
      check_error(Status::unavailable, {"rank 1 registers function 1", why("a host rank has no device graphs")}, [&] {
        tasks.register_kernel<LoopAll>({},
                                       {.start = world.rank() == 1 ? KernelStarter::device_graph : KernelStarter::any});
      });
    BEELINE_CHECK(tasks.kernel_start<LoopAll>().by == KernelStarter::any);  // not registered
    world.barrier();
  });
}

/// A queue whose tasks do not end accepts no more: its posters end by the deadline.
TEST_P(TaskFaults, AQueueThatStaysFull) {
  run([](World& world, Team& team) {
    Tasks<List> tasks(team, {.queues = 1, .depth = 2, .workers = 1});
    tasks.register_function<Loop>({});
    TaskPost what = good();
    what.function = List::index_of<Loop>();
    if (world.rank() == 0) {
      const Stopwatch watch;
      try {
        post(team, tasks, what, 4);
        BEELINE_CHECK(false);
      } catch (const Error&) {
        BEELINE_CHECK(watch.seconds() < 5 * deadline_s);
      }
    }
    await_failure(team);
    world.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(On, TaskFaults, ::testing::Values(false, true),
                         [](const auto& on) { return on.param ? "gpu" : "cpu"; });

/// Ends the process that runs it.
struct Die {
  static constexpr const char* name = "die";
  using Arguments = Number;
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group&, const Context&, const Task&) const {
#if !BEELINE_ON_GPU
    ::kill(::getpid(), SIGKILL);
#endif
  }
};
using Deadly = TaskList<Add, Die>;

/// Posts tasks, each of which is answered before the next is posted, and then one that ends its target.
struct PostAnsweredAndDie {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, TaskChannel channel, std::uint64_t* reply) const {
    const Number number{1};
    for (std::uint64_t value = 1; value <= 5; ++value) {
      TaskPost post = task_of<Deadly, Add>(number, 1);
      post.reply = reply, post.reply_value = value;
      if (post_task(grid.block(), ctx, channel, post) != Status::ok) return;
      if (wait(grid.block(), ctx, reply, Compare::equal, value, 1) != Status::ok) return;
    }
    static_cast<void>(post_task(grid.block(), ctx, channel, task_of<Deadly, Die>(number, 1)));
    static_cast<void>(quiet(grid.block(), ctx, channel, 1, 0));
  }
};

/// The death of a target, on this node or another, ends the waits for its tasks.
class TaskDeaths : public ::testing::TestWithParam<int> {
 protected:
  /// Only rank 0 calls `post`; if nothing ends rank 1 earlier, a signal does.
  template <class List>
  static void expect_seen(const std::function<void(Tasks<List>&)>& register_it,
                          const std::function<void(World&, Tasks<List>&, const Signals&)>& post) {
    if (under_thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer sees one process";
    Config config = split_config(20'000'000'000, "sockets");
    config.split_nodes = GetParam();
    expect_others_passed(1, run_ranks(
                                WorldKind::processes, 2,
                                [&](World& world) {
                                  Tasks<List> tasks(world, {.queues = 1, .depth = 4, .workers = 1});
                                  const Signals reply(world, 1);
                                  register_it(tasks);
                                  const Stopwatch watch;
                                  if (world.rank() == 1) {
                                    std::this_thread::sleep_for(std::chrono::milliseconds(200));
                                    ::kill(::getpid(), SIGKILL);
                                  }
                                  check_error(Status::peer_died, {"rank 1"}, [&] {
                                    post(world, tasks, reply);
                                    world.synchronize();
                                    world.barrier();
                                  });
                                  BEELINE_CHECK(watch.seconds() < 10);
                                  Team& left = world.survivors();
                                  BEELINE_CHECK_EQ(1, left.size());
                                },
                                config));
  }
  template <class List, class Function>
  static void post_many(World& world, Tasks<List>& tasks, const Signals&) {
    TaskPost what;
    what.rank = 1, what.function = List::template index_of<Function>(), what.argument_bytes = sizeof(Number);
    launch(world, {.threads = 32, .waits = true}, PostRaw{}, tasks.channel(), what, 10u);
  }
};

TEST_P(TaskDeaths, ATargetThatDiesWithTasksQueued) {
  expect_seen<List>([](Tasks<List>& tasks) { tasks.register_function<Loop>({}); }, post_many<List, Loop>);
}
TEST_P(TaskDeaths, ATargetThatDiesWithKernelsQueued) {
  expect_seen<Kernels>([](Tasks<Kernels>& tasks) { tasks.register_kernel<LoopAll>({}, {}); },
                       post_many<Kernels, LoopAll>);
}
TEST_P(TaskDeaths, ATargetThatDiesInATaskAfterItsReplies) {
  std::uint64_t sum = 0;
  expect_seen<Deadly>(
      [&](Tasks<Deadly>& tasks) {
        tasks.register_function<Add>({&sum, nullptr, 0, nullptr});
        tasks.register_function<Die>({});
      },
      [](World& world, Tasks<Deadly>& tasks, const Signals& reply) {
        launch(world, {.threads = 32, .waits = true}, PostAnsweredAndDie{}, tasks.channel(), reply.data());
      });
}

INSTANTIATE_TEST_SUITE_P(Nodes, TaskDeaths, ::testing::Values(1, 2));

}  // namespace

}  // namespace beeline_test::tasks_test
