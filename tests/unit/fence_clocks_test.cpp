// SPDX-License-Identifier: Apache-2.0
// ThreadSanitizer with the fences of tests/support/fence_clocks.cpp: accesses that they order are no race, others are.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace beeline_test {

namespace {

/// Where a thread has its fence. The sender accesses its data and then the flag; the receiver accesses the flag and
/// then the data.
enum class Fence { between, before_both, nowhere };

int data = 0;
std::atomic<std::uint64_t> flag{0};

void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

void receive(Fence place) {
  if (place == Fence::before_both) fence();
  while (flag.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
  if (place == Fence::between) fence();
  std::exit(data == 1 ? 0 : 1);
}

/// Sends one message between two threads; the process ends with 0, or as ThreadSanitizer ends it after a report.
void pass_message(Fence sender, Fence receiver) {
  std::thread thread(receive, receiver);
  if (sender == Fence::before_both) fence();
  data = 1;
  if (sender == Fence::between) fence();
  flag.store(1, std::memory_order_relaxed);
  thread.join();
}

class FenceClocks : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static constexpr int reported = 66;
};

TEST_F(FenceClocks, OrderAMessage) {
  EXPECT_EXIT(pass_message(Fence::between, Fence::between), ::testing::ExitedWithCode(0), "");
}

TEST_F(FenceClocks, NeedTheSenders) {
  for (const Fence place : {Fence::nowhere, Fence::before_both})
    EXPECT_EXIT(pass_message(place, Fence::between), ::testing::ExitedWithCode(reported), "data race");
}

TEST_F(FenceClocks, NeedTheReceivers) {
  for (const Fence place : {Fence::nowhere, Fence::before_both})
    EXPECT_EXIT(pass_message(Fence::between, place), ::testing::ExitedWithCode(reported), "data race");
}

}  // namespace

}  // namespace beeline_test
