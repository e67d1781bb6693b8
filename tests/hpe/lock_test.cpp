// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "hpe/lock_timer.hpp"

namespace beeline_test {

namespace {

using beeline::hpe::LockTimes;
using beeline::hpe::detail::MeasuredMutex;

/// Threads that come while the first one, to which the lock belongs, takes it again and again.
TEST(MeasuredMutexes, ExcludeThreadsFromTheFirstOnesCalls) {
  constexpr int rounds = 60, others = 3, calls = 50;
  for (int round = 0; round < rounds; ++round) {
    MeasuredMutex mutex;
    std::atomic<int> left{others};
    std::uint64_t first = 0, second = 0, by_first = 0;  // equal, whenever the mutex is free
    const auto call = [&] {
      const std::lock_guard lock(mutex);
      ASSERT_EQ(first, second);
      ++first;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      ++second;
    };
    call();
    std::vector<std::thread> threads;
    for (int each = 0; each < others; ++each)
      threads.emplace_back([&] {
        for (int i = 0; i < calls; ++i) call();
        --left;
      });
    for (by_first = 1; left > 0; ++by_first) call();
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(first, by_first + others * calls) << "round " << round;
    EXPECT_EQ(mutex.times().calls, first);
  }
}

TEST(MeasuredMutexes, BelongToAnotherThreadAfterTheFirstHasEnded) {
  MeasuredMutex mutex;
  std::uint64_t calls = 0;
  for (int each = 0; each < 20; ++each)
    std::thread([&] {
      for (int i = 0; i < 10; ++i) {
        const std::lock_guard lock(mutex);
        ++calls;
      }
    }).join();
  const LockTimes times = mutex.times();
  EXPECT_EQ(calls, 200u);
  EXPECT_EQ(times.calls, 200u);
  EXPECT_LE(times.longest_ns, times.held_ns);
}

}  // namespace

}  // namespace beeline_test
