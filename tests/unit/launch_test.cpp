// SPDX-License-Identifier: Apache-2.0
// Launches in a world of one host rank: which threads run, when, and how their failures are reported.
#include "beeline/host/launch.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "beeline/device/signal.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "tests/support/check.hpp"
#include "tests/support/ranks.hpp"

namespace beeline {

namespace {

std::unique_ptr<World> world_of_one(int host_threads) {
  Config config = beeline_test::test_config();
  config.device = "cpu";
  config.host_threads = host_threads;
  return World::create(config, make_single_bootstrap());
}

LaunchOptions shape(unsigned blocks, bool waits, Stream* stream = nullptr) {
  LaunchOptions options;
  options.blocks = blocks;
  options.waits = waits;
  options.stream = stream;
  return options;
}

/// Counts its threads, and the most blocks that ran at the same time.
struct Census {
  std::atomic<unsigned> threads{0}, present{0}, most_present{0};
};

struct CensusKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, Census* census) const {
    ++census->threads;
    if (grid.block().thread_rank() == 0) {
      const unsigned now = ++census->present;
      for (unsigned most = census->most_present;
           now > most && !census->most_present.compare_exchange_weak(most, now);) {
      }
    }
    grid.block().sync();
    if (grid.block().thread_rank() == 0) --census->present;
  }
};

/// A wait for a host stream sleeps: a wait that polls would be scheduled thousands of times.
TEST(Synchronize, SleepsWhileTheStreamWorks) {
  const auto world = world_of_one(1);
  world->stream().enqueue([] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); });
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  world->synchronize();
  getrusage(RUSAGE_THREAD, &after);
  EXPECT_TRUE(world->stream().drained());
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 200);
}

TEST(Launch, RunsEveryThreadOfEveryBlock) {
  for (const int host_threads : {1, 3}) {
    const auto world = world_of_one(host_threads);
    Census census;
    launch(*world, shape(50, false), CensusKernel{}, &census);
    world->synchronize();
    EXPECT_EQ(50u * static_cast<unsigned>(host_threads), census.threads.load());
    EXPECT_EQ(1u, census.most_present.load()) << "blocks that do not wait need no threads of their own";
  }
}

struct MeetKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::atomic<unsigned>* met) const {
    if (grid.sync(ctx) == Status::ok) ++*met;
  }
};

TEST(Launch, WaitingBlocksAreAllThereAtOnce) {
  const auto world = world_of_one(2);
  constexpr unsigned most = max_host_threads / 2;
  std::atomic<unsigned> met{0};
  launch(*world, shape(most, true), MeetKernel{}, &met);
  world->synchronize();
  EXPECT_EQ(2 * most, met.load());
}

/// The recommended blocks are as many as the cores run at once; a lone rank has all cores of its process.
TEST(Launch, RecommendsWhatTheCoresRun) {
  cpu_set_t allowed;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof allowed, &allowed));
  const auto cores = static_cast<unsigned>(CPU_COUNT(&allowed));
  std::atomic<unsigned>* const met = nullptr;
  for (const int host_threads : {1, 2, 200}) {
    const auto world = world_of_one(host_threads);
    EXPECT_EQ(std::max(1u, cores / static_cast<unsigned>(host_threads)), resident_blocks(*world, 1, MeetKernel{}, met));
  }
}

/// Ranks that may run on the same cores get a share of them each.
TEST(Launch, RecommendsAShareOfCommonCores) {
  cpu_set_t allowed;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof allowed, &allowed));
  const auto cores = static_cast<unsigned>(CPU_COUNT(&allowed));
  constexpr unsigned ranks = 2;
  beeline_test::expect_passed_on_cpus(ranks, [&](World& world) {
    const unsigned blocks = cores / ranks / static_cast<unsigned>(world.config().host_threads);
    BEELINE_CHECK_EQ(std::max(1u, blocks), (resident_blocks<MeetKernel, std::atomic<unsigned>*>(world, 1)));
  });
}

struct AppendKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context&, std::string* text, char letter) const {
    *text += letter;
  }
};

TEST(Launch, LaunchesOfOneStreamFollowEachOther) {
  const auto world = world_of_one(1);
  std::string text;
  for (const char letter : std::string("beeline")) launch(*world, shape(1, false), AppendKernel{}, &text, letter);
  world->synchronize();
  EXPECT_EQ("beeline", text);
}

struct WaitKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context& ctx, std::uint64_t* signal) const {
    static_cast<void>(wait(Thread{}, ctx, signal, Compare::equal, 1));
  }
};
struct SignalKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context& ctx, std::uint64_t* flag) const {
    signal(Thread{}, ctx, flag, 1, ctx.rank);
  }
};

TEST(Launch, StreamsRunSideBySide) {
  const auto world = world_of_one(1);
  for (const StreamPriority priority : {StreamPriority::normal, StreamPriority::high}) {
    const auto other = world->make_stream(priority);
    const Signals flag(*world, 1);
    launch(*world, shape(1, true), WaitKernel{}, flag.data());
    launch(*world, shape(1, true, other.get()), SignalKernel{}, flag.data());
    world->synchronize();
    world->synchronize(*other);
  }
}

struct ThrowingKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&) const {
    if (grid.thread_rank() == 1) throw std::runtime_error("thread 1 fails");
  }
};

TEST(Launch, AnExceptionInAKernelReachesSynchronize) {
  const auto world = world_of_one(2);
  launch(*world, shape(1, false), ThrowingKernel{});
  try {
    world->synchronize();
    ADD_FAILURE() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ("thread 1 fails", error.what());
  }
  Census census;
  launch(*world, shape(1, false), CensusKernel{}, &census);
  world->synchronize();
  EXPECT_EQ(2u, census.threads.load()) << "the stream goes on";
}

}  // namespace

}  // namespace beeline
