// SPDX-License-Identifier: Apache-2.0
// After a failure the remaining ranks agree who they are, and continue: barriers, memory, kernels, teams.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/killings.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/repetitions.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::survivors_test {

namespace {

using namespace beeline;

constexpr int ranks = 4;
constexpr const char* one_process = "ThreadSanitizer sees one process";

/// The devices of the ranks: CPUs; a GPU each; or a GPU for rank 0, CPUs for the others.
enum class Devices { cpus, gpus, a_gpu_and_cpus };

bool is_on_gpu(Devices devices, int rank) {
  return devices == Devices::gpus || (devices == Devices::a_gpu_and_cpus && rank == 0);
}

/// The number of ranks: processes do not share GPUs.
int size_of(Devices devices) { return devices == Devices::gpus ? std::clamp(gpus_here(), 2, ranks) : ranks; }

/// Why processes of this machine cannot have these devices; empty if they can.
std::string reason(Devices devices) {
  if (devices == Devices::cpus) return {};
  std::string why;
  const int needed = devices == Devices::gpus ? 2 : 1, gpus = gpus_here(&why);
  return gpus < needed ? join("needs ", needed, " GPUs, ", gpus, " here ", why) : "";
}

Config config_of(Devices devices) {
  Config config = test_config();
  config.device = devices == Devices::cpus ? "cpu" : devices == Devices::gpus ? "auto" : "cuda:0,cpu,cpu,cpu";
  return config;
}
Config host_config() { return config_of(Devices::cpus); }

/// The heap that kernels of all ranks can access.
Heap common_heap(World& world) { return world.context().mixed ? Heap::pinned : Heap::symmetric; }

/// Every member puts its world rank to every other, and sums up all after a barrier.
struct MeetKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* board, std::uint64_t* sum) const {
    for (std::uint32_t peer = grid.block().thread_rank(); peer < ctx.size; peer += grid.block().size())
      put_value<std::uint64_t>(ctx, &board[ctx.rank], ctx.world_rank(ctx.rank) + 1, peer);
    if (barrier(grid.block(), ctx) != Status::ok || grid.thread_rank() != 0) return;
    *sum = 0;
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) *sum += board[peer];
  }
};

void meet_in_a_kernel(World& world, Team& team, std::uint64_t* board) {
  std::uint64_t* sum = board + ranks + 1;
  launch(team, {.waits = true}, MeetKernel{}, board, sum);
  world.synchronize();
  std::uint64_t seen = 0, expected = 0;
  world.copy(&seen, sum, sizeof seen);
  for (int member = 0; member < team.size(); ++member)
    expected += static_cast<std::uint64_t>(team.world_rank(member)) + 1;
  BEELINE_CHECK_EQ(expected, seen);
}

/// Uses everything that a world of healthy ranks offers.
void work_together(World& world, Team& team, const std::vector<int>& left) {
  BEELINE_CHECK_EQ(left.size(), static_cast<std::size_t>(team.size()));
  for (int member = 0; member < team.size(); ++member)
    BEELINE_CHECK_EQ(left[static_cast<std::size_t>(member)], team.world_rank(member));
  BEELINE_CHECK(!world.failed());
  BEELINE_CHECK(world.failed_waits().empty());
  world.check();
  const SymmetricArray<std::uint64_t> board(world, ranks + 2, common_heap(world));
  for (int round = 0; round < 3; ++round) {
    team.barrier();
    meet_in_a_kernel(world, team, board.data());
    world.barrier();
  }
  const Segment& segment = world.create_segment(MemoryKind::host, 5000);
  for (int rank = 0; rank < world.size(); ++rank)
    BEELINE_CHECK_EQ(world.health()[static_cast<std::size_t>(rank)].state == RankState::healthy,
                     segment.parts[static_cast<std::size_t>(rank)].bytes == 5000);
  world.destroy_segment(segment.id);
  const int next = left[static_cast<std::size_t>((team.rank() + 1) % team.size())];
  const int previous = left[static_cast<std::size_t>((team.rank() + team.size() - 1) % team.size())];
  StagedChannel channel(world, 1000, 2);
  const std::vector<int> sent(2000, world.rank());
  std::vector<int> received(2000, -1);
  channel.send_receive(sent.data(), next, received.data(), previous, sent.size() * sizeof(int));
  BEELINE_CHECK_EQ(previous, received.back());
  const std::unique_ptr<Team> part =
      world.make_team(team.rank() == 0 ? std::vector<int>{} : std::vector<int>(left.begin() + 1, left.end()));
  if (part) meet_in_a_kernel(world, *part, board.data());
  world.barrier();
}

std::vector<int> without(std::vector<int> gone, int size) {
  std::vector<int> left;
  for (int rank = 0; rank < size; ++rank)
    if (std::find(gone.begin(), gone.end(), rank) == gone.end()) left.push_back(rank);
  return left;
}

struct Activity {
  const char* name;
  void (*repeat)(World&);
};

struct BarrierKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx) const {
    Barrier barrier(grid.block(), ctx);
    while (barrier.sync() == Status::ok) {
    }
  }
};

struct PutKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* area, std::size_t count) const {
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
      if (peer != ctx.rank) put(grid.block(), ctx, area, area + count, count, peer);
  }
};

constexpr Activity activities[] = {
    {"Barrier",
     [](World& world) {
       for (;;) world.barrier();
     }},
    {"KernelBarrier",
     [](World& world) {
       LaunchOptions options;
       options.waits = true;
       launch(world, options, BarrierKernel{});
       world.synchronize();
     }},
    {"Put",
     [](World& world) {
       constexpr std::size_t count = 20'000;
       auto* area = static_cast<std::uint64_t*>(world.allocate(2 * count * sizeof(std::uint64_t), common_heap(world)));
       for (;;) {
         launch(world, {}, PutKernel{}, area, count);
         world.synchronize();
       }
     }},
    {"Allocation",
     [](World& world) {
       for (std::size_t bytes = 1000;; bytes += 500) world.free(world.allocate(bytes % 100'000));
     }},
    {"Segments",
     [](World& world) {
       for (;;) world.destroy_segment(world.create_segment(MemoryKind::host, 10'000).id);
     }},
    {"Teams",
     [](World& world) {
       const int last = world.size() - 1;
       for (;;)
         static_cast<void>(world.make_team(world.rank() == last ? std::vector<int>{} : without({last}, world.size())));
     }},
    {"Stream",
     [](World& world) {
       const Signals signals(world, 1);
       for (std::uint64_t round = 1;; ++round) {
         world.stream().write_signal(signals.at((world.rank() + 1) % world.size()), round);
         world.stream().wait_signal(signals.data(), round);
         world.synchronize();
       }
     }},
};

void go_on_without(World& world, int victim) {
  const RankHealth health = world.health()[static_cast<std::size_t>(victim)];
  BEELINE_CHECK_EQ(std::string("failed"), name(health.state));
  BEELINE_CHECK_CONTAINS(health.reason, join("rank ", victim, " "));
  Team& team = world.survivors();
  work_together(world, team, without({victim}, world.size()));
}

/// The victim is killed some time after all ranks have begun, which increases with each repetition.
void kill_while(World& world, const Activity& activity, int victim, int repetition) {
  const SymmetricArray<std::uint64_t> before(world, 3);
  const std::uint64_t written = 77 + static_cast<std::uint64_t>(world.rank());
  world.copy(before.data() + 1, &written, sizeof written);
  check_error(Status::peer_died, {join("rank ", victim, " ended")}, [&] {
    world.barrier();  // some may still be in it when the victim has left
    std::thread killer([=, rank = world.rank()] {
      if (rank != victim) return;
      usleep(15'000 + 777u * static_cast<unsigned>(repetition % 50));
      Killings::end_this_process();
    });
    killer.detach();
    activity.repeat(world);
  });
  Killings::noticed();
  go_on_without(world, victim);
  std::uint64_t read = 0;
  world.copy(&read, before.data() + 1, sizeof read);
  BEELINE_CHECK_EQ(written, read);
}

struct Parameter {
  std::size_t activity;
  int victim;
  Devices devices;
};

class KilledWhile : public ::testing::TestWithParam<Parameter> {};

TEST_P(KilledWhile, TheOthersGoOn) {
  if (under_thread_sanitizer) GTEST_SKIP() << one_process;
  const auto [activity, victim, devices] = GetParam();
  if (const std::string why = reason(devices); !why.empty()) GTEST_SKIP() << why;
  const int size = size_of(devices), few = devices == Devices::cpus ? 2 : 1;
  for (int repetition = 0, end = repetitions(few); repetition < end && !HasFailure(); ++repetition) {
    const auto body = [&](World& world) { kill_while(world, activities[activity], victim, repetition); };
    const auto outcomes = run_ranks(WorldKind::processes, size, body, config_of(devices), 60);
    Killings::count(is_on_gpu(devices, victim));
    for (int rank = 0; rank < size; ++rank) {
      const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      EXPECT_EQ(rank == victim ? SIGKILL : 0, outcome.signal);
      EXPECT_TRUE(rank == victim || outcome.failure.empty()) << "rank " << rank << ": " << outcome.failure;
    }
  }
}

/// The device matters only to activities in which kernels or streams wait, or memory is allocated.
bool concerns(const Activity& activity, Devices devices) {
  constexpr std::string_view of_devices[] = {"KernelBarrier", "Put", "Allocation", "Stream"};
  return devices == Devices::cpus || std::count(std::begin(of_devices), std::end(of_devices), activity.name) != 0;
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const Devices devices : {Devices::cpus, Devices::gpus, Devices::a_gpu_and_cpus})
    for (std::size_t activity = 0; activity < std::size(activities); ++activity)
      for (const int victim : {0, devices == Devices::gpus ? 1 : 2})
        if (concerns(activities[activity], devices)) all.push_back({activity, victim, devices});
  return all;
}

std::string parameter_name(const ::testing::TestParamInfo<Parameter>& info) {
  constexpr const char* where[] = {"", "OnGpus", "BesideAGpu"};
  return join(activities[info.param.activity].name, "Rank", info.param.victim,
              where[static_cast<std::size_t>(info.param.devices)]);
}

INSTANTIATE_TEST_SUITE_P(Activities, KilledWhile, ::testing::ValuesIn(parameters()), parameter_name);

/// As above, if a rank that is a thread gives up. A stream other than the default one waits for it, and begins that
/// wait when the world has failed.
TEST(Survivors, OfThreadsGoOn) {
  const auto outcomes = run_ranks(
      WorldKind::threads, ranks,
      [](World& world) {
        const Signals signals(world, 1);
        if (world.rank() == 1) {
          world.barrier();
          throw std::runtime_error("the input file is empty");
        }
        const std::unique_ptr<Stream> stream = world.make_stream();
        stream->enqueue([] { usleep(200'000); });
        stream->wait_signal(signals.data(), 1);
        check_error(Status::peer_died, {"rank 1", "the input file is empty"}, [&] {
          for (;;) world.barrier();
        });
        BEELINE_CHECK_EQ(1, world.health()[1].noticed_by);
        go_on_without(world, 1);
        BEELINE_CHECK(stream->drained());
        std::uint64_t value = 0;
        world.copy(&value, signals.data(), sizeof value, *stream);
        world.synchronize(*stream);
      },
      host_config(), 60);
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(rank == 1 ? "the input file is empty" : "", outcomes[static_cast<std::size_t>(rank)].failure);
}

TEST(Survivors, MayLoseOneAfterTheOther) {
  const auto outcomes = run_ranks(
      WorldKind::threads, ranks,
      [](World& world) {
        std::vector<int> gone;
        for (int victim = 0; victim < ranks - 1; ++victim) {
          if (world.rank() == victim) {
            world.barrier();
            throw std::runtime_error("in its turn");
          }
          check_error(Status::peer_died, {join(": rank ", victim, " aborted: in its turn")}, [&] {
            for (;;) world.barrier();
          });
          gone.push_back(victim);
          work_together(world, world.survivors(), without(gone, ranks));
        }
      },
      host_config(), 60);
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(rank == ranks - 1 ? "" : "in its turn", outcomes[static_cast<std::size_t>(rank)].failure);
}

/// A barrier to which `missing` does not come: the first deadline that passes aborts the other waits.
void miss(World& world, int missing) {
  try {
    world.barrier();
  } catch (const Error& error) {
    BEELINE_CHECK(error.code() == Status::deadline || error.code() == Status::aborted);
    BEELINE_CHECK_CONTAINS(error.what(), join("barrier on rank ", missing));
    return;
  }
  throw CheckFailure("a barrier without one of its ranks");
}

TEST(Survivors, LeaveOutARankThatDoesNotAnswer) {
  Config config = host_config();
  config.deadline_ns = 1'000'000'000;
  std::atomic<int> gone_on{0};
  expect_all_passed(run_ranks(
      WorldKind::threads, ranks,
      [&](World& world) {
        world.barrier();
        if (world.rank() == 3) {
          const Stopwatch stopwatch;
          while (gone_on < ranks - 1 && stopwatch.seconds() < 20) usleep(1000);
          check_error(Status::peer_died, {": rank 3 did not answer rank"}, [&] { world.barrier(); });
          check_error(Status::aborted, {"rank 3 is not among those that are left"},
                      [&] { static_cast<void>(world.survivors()); });
          return;
        }
        const Stopwatch stopwatch;
        miss(world, 3);
        Team& team = world.survivors();
        BEELINE_CHECK(stopwatch.seconds() < 4);
        BEELINE_CHECK_EQ(std::string("failed"), name(world.health()[3].state));
        BEELINE_CHECK(world.health()[3].noticed_by >= 0);
        work_together(world, team, {0, 1, 2});
        ++gone_on;
        world.barrier();
      },
      config, 60));
}

/// A deadline passes although no rank has died: the world is cleared, and all continue.
TEST(Survivors, MayBeAll) {
  Config config = host_config();
  config.deadline_ns = 1'500'000'000;
  expect_all_passed(run_ranks(
      WorldKind::threads, ranks,
      [](World& world) {
        for (int late = 0; late < 2; ++late) {
          if (world.rank() == late)
            while (!world.failed()) usleep(1000);
          miss(world, late);
          work_together(world, world.survivors(), {0, 1, 2, 3});
        }
      },
      config, 60));
}

/// A death ends the waits of the teams with the dead rank, and of no others.
TEST(Teams, WithoutTheDeadGoOn) {
  if (under_thread_sanitizer) GTEST_SKIP() << one_process;
  const auto outcomes = run_ranks(
      WorldKind::processes, ranks,
      [](World& world) {
        const bool first = world.rank() < 2;
        std::unique_ptr<Team> team = world.make_team(first ? std::vector<int>{0, 1} : std::vector<int>{2, 3});
        const SymmetricArray<std::uint64_t> board(world, ranks + 2);
        meet_in_a_kernel(world, *team, board.data());
        world.barrier();
        if (world.rank() == 3) {
          usleep(700'000);  // the others have left the barrier
          kill(getpid(), SIGKILL);
        }
        if (!first) {
          check_error(Status::peer_died, {"rank 3 ended"}, [&] {
            for (;;) team->barrier();
          });
        } else {
          const Stopwatch stopwatch;
          while (!world.failed() && stopwatch.seconds() < 10) usleep(1000);
          BEELINE_CHECK(world.failed());
          BEELINE_CHECK(world.health()[3].state != RankState::healthy);
          for (int i = 0; i < 100; ++i) team->barrier();
          meet_in_a_kernel(world, *team, board.data());
          BEELINE_CHECK(!team->failed());
          check_error(Status::peer_died, {"rank 3 ended"}, [&] { world.barrier(); });
          team->barrier();
        }
        BEELINE_CHECK_EQ(!first, team->failed());
        if (!first) team.reset();
        work_together(world, world.survivors(), {0, 1, 2});
        if (first) meet_in_a_kernel(world, *team, board.data());
        world.barrier();
      },
      host_config(), 60);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ("", outcomes[static_cast<std::size_t>(rank)].failure);
  EXPECT_EQ(SIGKILL, outcomes[3].signal);
}

TEST(Survivors, NeedTheLauncher) {
  constexpr int size = 2;
  const std::string token = make_token();
  std::optional<RendezvousServer> server(std::in_place, RendezvousServer::Options{size, token});
  std::vector<std::string> failures(size);
  std::vector<std::thread> threads;
  std::atomic<int> worlds{0};
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank, address = server->address()] {
      Config config = host_config();
      config.rank = rank, config.size = size, config.rendezvous = address, config.token = token;
      try {
        const std::unique_ptr<World> world = World::create(config);
        ++worlds;
        check_error(Status::aborted, {"the world ended", "launcher has ended"}, [&] {
          for (;;) world->barrier();
        });
        check_error(Status::peer_died, {"the launcher has ended"}, [&] { static_cast<void>(world->survivors()); });
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (const Stopwatch set_up; worlds < size && set_up.seconds() < 20;) usleep(1000);
  server.reset();
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ("", failure);
}

TEST(Health, OfAllIsGood) {
  for (const WorldKind kind : {WorldKind::threads, WorldKind::processes}) {
    if (kind == WorldKind::processes && under_thread_sanitizer) continue;
    expect_all_passed(run_ranks(
        kind, 3,
        [](World& world) {
          BEELINE_CHECK_EQ(std::size_t{3}, world.health().size());
          for (const RankHealth& each : world.health()) BEELINE_CHECK_EQ(std::string("healthy"), name(each.state));
          world.barrier();
        },
        host_config(), 60));
  }
}

}  // namespace

}  // namespace beeline_test::survivors_test
