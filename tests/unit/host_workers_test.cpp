// SPDX-License-Identifier: Apache-2.0
// The threads that run a host rank's grids: all tasks of a run are there at once if they wait for each other.
#include "transport/host_workers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace beeline {

namespace {

TEST(HostWorkers, TasksMayWaitForEachOther) {
  HostWorkers workers;
  for (unsigned round = 0; round < 50; ++round)
    for (const unsigned count : {1u, 2u, 3u, 17u, 64u}) {
      std::atomic<unsigned> arrived{0};
      workers.run(count, [&](unsigned) {
        ++arrived;
        while (arrived < count) std::this_thread::yield();
      });
      ASSERT_EQ(count, arrived.load());
    }
}

TEST(HostWorkers, EachTaskRunsOnce) {
  HostWorkers workers;
  for (unsigned round = 0; round < 2000; ++round) {
    std::vector<std::atomic<unsigned>> runs(1 + round % 40);
    workers.run(static_cast<unsigned>(runs.size()), [&](unsigned task) { ++runs[task]; });
    for (const std::atomic<unsigned>& each : runs) ASSERT_EQ(1u, each.load());
  }
}

TEST(HostWorkers, ThreadsAreKept) {
  HostWorkers workers;
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (unsigned round = 0; round < 200; ++round) {
    std::atomic<unsigned> arrived{0};
    workers.run(4, [&](unsigned) {
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
