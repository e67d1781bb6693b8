// SPDX-License-Identifier: Apache-2.0
/// @file
/// Every host wait under every policy: it ends when it should, otherwise at the deadline, and sleeps only if asked to.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "beeline/beeline.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace beeline {

namespace {

class WaitPolicies : public ::testing::TestWithParam<WaitPolicy> {
 protected:
  static Config config_with(WaitPolicy policy, std::int64_t deadline_ns = 30'000'000'000) {
    Config config;
    config.threads = true;
    config.size = 2;
    config.device = "cpu";
    config.heap_bytes = std::size_t{1} << 20;
    config.pinned_heap_bytes = std::size_t{1} << 20;
    config.wait_policy = policy;
    config.wait_period_us = 200;
    config.deadline_ns = deadline_ns;
    return config;
  }
};

/// How often this thread has gone to sleep.
long sleeps_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

std::string text_of(const ::testing::TestParamInfo<WaitPolicy>& each) { return name(each.param); }

}  // namespace

TEST_P(WaitPolicies, ASignalIsSeen) {
  std::atomic<long> sleeps = 0;
  std::atomic<bool> waits = false;
  EXPECT_EQ(run(config_with(GetParam()),
                [&](World& world) {
                  SymmetricArray<std::uint64_t> word(world, 1);
                  const Context ctx = world.context();
                  if (world.rank() == 1) {
                    while (!waits) std::this_thread::yield();
                    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the waiting thread waits for this
                    ASSERT_EQ(signal(Thread{}, ctx, word.data(), 1, 0), Status::ok);
                  } else {
                    waits = true;
                    const long before = sleeps_of_this_thread();
                    ASSERT_EQ(wait(Thread{}, ctx, word.data(), Compare::equal, 1, 1), Status::ok);
                    sleeps = sleeps_of_this_thread() - before;
                  }
                  world.barrier();
                }),
            0);
  // Even on a busy machine: 200 ms are 1,000 periods, and a thread that spins or yields never goes to sleep.
  if (GetParam() >= WaitPolicy::sleep) {
    EXPECT_GE(sleeps, 20);
  } else if (GetParam() != WaitPolicy::automatic) {
    EXPECT_LE(sleeps, 5);
  }
}

TEST_P(WaitPolicies, AStreamIsAwaited) {
  EXPECT_EQ(run(config_with(GetParam()),
                [&](World& world) {
                  std::atomic<bool> ran = false;
                  world.stream().enqueue([&] {
                    std::this_thread::sleep_for(std::chrono::milliseconds(30));
                    ran = true;
                  });
                  const long before = sleeps_of_this_thread();
                  world.synchronize();
                  EXPECT_TRUE(ran);
                  const long sleeps = sleeps_of_this_thread() - before;
                  if (GetParam() != WaitPolicy::event) return;
                  EXPECT_GE(sleeps, 1);
                  EXPECT_LE(sleeps, 20);  // not one for each period
                }),
            0);
}

TEST_P(WaitPolicies, TheDeadlineEndsAWait) {
  constexpr std::int64_t deadline_ns = 150'000'000;
  std::atomic<bool> over = false;
  EXPECT_NE(run(config_with(GetParam(), deadline_ns),
                [&](World& world) {
                  SymmetricArray<std::uint64_t> word(world, 1);
                  if (world.rank() == 0) {
                    const auto start = std::chrono::steady_clock::now();
                    EXPECT_EQ(wait(Thread{}, world.context(), word.data(), Compare::equal, 1, 1), Status::deadline);
                    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::nanoseconds(deadline_ns));
                    beeline_test::check_error(Status::deadline, {"deadline: ", "wait on rank 1"},
                                              [&] { world.synchronize(); });
                    over = true;
                  }
                  while (!over) std::this_thread::yield();
                }),
            0);  // the world has failed
}

TEST_P(WaitPolicies, ThreadsOfABlockMeet) {
  Config config = config_with(GetParam());
  config.host_threads = 3;
  EXPECT_EQ(run(config,
                [&](World& world) {
                  SymmetricArray<std::uint64_t> word(world, 1);
                  launch(
                      world, {.blocks = 1},
                      [](auto& grid, const Context&, std::uint64_t* out) {
                        for (int round = 0; round < 20; ++round) grid.block().sync();
                        if (grid.thread_rank() == 0) *out = 7;
                      },
                      word.data());
                  world.synchronize();
                  EXPECT_EQ(*word.data(), 7);
                }),
            0);
}

TEST_P(WaitPolicies, AGpusStreamIsAwaited) {
  if (visible_gpus().empty()) GTEST_SKIP() << "no GPU";
  Config config = config_with(GetParam());
  config.size = 1;
  config.device = "cuda:0";
  config.heap_bytes = std::size_t{1} << 30;
  EXPECT_EQ(run(config,
                [&](World& world) {
                  constexpr std::size_t bytes = std::size_t{256} << 20;
                  SymmetricArray<unsigned char> bulk(world, bytes);
                  for (int round = 0; round < 400; ++round)  // some 40 ms
                    world.stream().fill(bulk.data(), static_cast<unsigned char>(round), bytes);
                  const long before = sleeps_of_this_thread();
                  world.synchronize();
                  const long sleeps = sleeps_of_this_thread() - before;
                  unsigned char last = 0;
                  world.copy(&last, bulk.data() + bytes - 1, 1);
                  EXPECT_EQ(last, 399 % 256);
                  if (GetParam() == WaitPolicy::event) EXPECT_LE(sleeps, 30);
                  if (GetParam() == WaitPolicy::spin) EXPECT_LE(sleeps, 5);
                }),
            0);
}

/// Work that is there or not, as the test says.
class CountedWork final : public detail::WaitWork {
 public:
  CountedWork() { detail::add_wait_work(*this); }
  ~CountedWork() { detail::remove_wait_work(*this); }
  CountedWork(const CountedWork&) = delete;
  CountedWork& operator=(const CountedWork&) = delete;
  bool work() noexcept override { return ++calls, is_there; }
  /// The number of yields in a wait before it first looks for work.
  std::uint32_t yields_until_work() {
    calls = 0;
    for (std::uint32_t yields = 0;; ++yields) {
      static_cast<void>(detail::do_wait_work(yields));
      if (calls > 0 || yields > 1000) return yields + 1;
    }
  }

  /// Continues a wait of this thread from one number of yields to another.
  static void wait_on(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t yields = from; yields < to; ++yields) static_cast<void>(detail::do_wait_work(yields));
  }

  bool is_there = false;
  int calls = 0;
};

TEST(WaitWork, ComesLaterInWaitsOfAThreadThatHasFoundNone) {
  std::thread([] {  // a thread that has not waited before
    CountedWork work;
    for (const std::uint32_t yields : {4u, 8u, 16u, 32u, 64u, 64u}) EXPECT_EQ(yields, work.yields_until_work());
    work.is_there = true;
    for (const std::uint32_t yields : {64u, 4u, 1u, 1u}) EXPECT_EQ(yields, work.yields_until_work());
    work.is_there = false;
    EXPECT_EQ(1u, work.yields_until_work()) << "the two waits before had work";
    work.wait_on(1, 64);
    EXPECT_EQ(64, work.calls) << "of one wait: before each yield soon after work";
    work.wait_on(64, 72);
    EXPECT_EQ(66, work.calls) << "and later before every fourth";
    EXPECT_EQ(8u, work.yields_until_work());
    work.is_there = true;
    work.wait_on(8, 12);
    work.is_there = false;
    work.wait_on(12, 16);
    EXPECT_EQ(1 + 1 + 1, work.calls) << "one wait with work changes nothing yet";
  })
      .join();
}

INSTANTIATE_TEST_SUITE_P(Each, WaitPolicies,
                         ::testing::Values(WaitPolicy::automatic, WaitPolicy::spin, WaitPolicy::yield,
                                           WaitPolicy::sleep, WaitPolicy::event),
                         text_of);

}  // namespace beeline
