// SPDX-License-Identifier: Apache-2.0
// The threads that run a host rank's grids: all tasks of a run get a thread if they wait for each other.
#include "transport/host_workers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/device/impl/machine.hpp"

namespace beeline {

namespace {

constexpr long never = 3'600'000'000'000;

/// They wait by other means than the library's: threads start at once, or when the timer expires.
TEST(HostWorkers, TasksMayWaitForEachOther) {
  HostWorkers workers;
  for (unsigned round = 0; round < 50; ++round)
    for (const auto& [count, at_once] : {std::pair{1u, 1u}, {2u, 2u}, {3u, 1u}, {17u, 4u}, {64u, 64u}}) {
      std::atomic<unsigned> arrived{0};
      workers.run(count, at_once, [&](unsigned) {
        ++arrived;
        while (arrived < count) std::this_thread::yield();
      });
      ASSERT_EQ(count, arrived.load());
    }
}

TEST(HostWorkers, AllThatRunAtOnceComeAtOnce) {
  HostWorkers workers(never);
  for (unsigned round = 0; round < 50; ++round) {
    std::atomic<unsigned> arrived{0};
    workers.run(7, 7, [&](unsigned) {
      ++arrived;
      while (arrived < 7) std::this_thread::yield();
    });
  }
}

/// Waits of the library yield their cores: the next thread then starts without the timer.
TEST(HostWorkers, AWaitMakesPlaceForATask) {
  HostWorkers workers(never);
  for (const WaitPolicy policy : {WaitPolicy::automatic, WaitPolicy::yield, WaitPolicy::sleep, WaitPolicy::event})
    for (const unsigned count : {2u, 20u}) {
      std::atomic<unsigned> arrived{0};
      workers.run(count, 1, [&](unsigned) {
        ++arrived;
        for (std::uint32_t poll = 0; arrived < count; ++poll) machine::back_off(poll, {policy, 10});
      });
      ASSERT_EQ(count, arrived.load());
    }
}

/// Tasks that do not wait run one after another on the calling thread.
TEST(HostWorkers, TasksWithoutWaitsNeedNoThread) {
  HostWorkers workers(never);
  for (unsigned round = 0; round < 100; ++round)
    workers.run(32, 1,
                [caller = std::this_thread::get_id()](unsigned) { EXPECT_EQ(caller, std::this_thread::get_id()); });
}

TEST(HostWorkers, EachTaskRunsOnce) {
  HostWorkers workers;
  for (unsigned round = 0; round < 2000; ++round) {
    std::vector<std::atomic<unsigned>> runs(1 + round % 40);
    workers.run(static_cast<unsigned>(runs.size()), 1 + round % 7, [&](unsigned task) { ++runs[task]; });
    for (const std::atomic<unsigned>& each : runs) ASSERT_EQ(1u, each.load());
  }
}

TEST(HostWorkers, ThreadsAreKept) {
  HostWorkers workers;
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (unsigned round = 0; round < 200; ++round) {
    std::atomic<unsigned> arrived{0};
    workers.run(4, 1 + round % 4, [&](unsigned) {
      ++arrived;
      while (arrived < 4) std::this_thread::yield();
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  }
  EXPECT_EQ(4u, seen.size());
  EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
}

}  // namespace

}  // namespace beeline
