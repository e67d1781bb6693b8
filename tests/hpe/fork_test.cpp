// SPDX-License-Identifier: Apache-2.0
// Processes that are forked while threads use this layer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/object.hpp"
#include "hpe/files/lane.hpp"
#include "tests/hpe/may_fork.hpp"
#include "tests/hpe/object_cases.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::forks {

namespace {

using namespace beeline::hpe;

/// Threads that repeat their work until the object ends.
class BusyThreads {
 public:
  explicit BusyThreads(const std::vector<std::function<void()>>& works) {
    for (const std::function<void()>& work : works)
      threads_.emplace_back([this, work] {
        while (!are_over_) work();
      });
  }
  ~BusyThreads() {
    are_over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  std::atomic<bool> are_over_{false};
  std::vector<std::thread> threads_;
};

/// Children have waited until their alarm, in other builds more rarely; the cause is not known yet.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool is_tested = false;
#else
constexpr bool is_tested = true;
#endif
constexpr const char* known_hang =
    "children hang at times, most often under AddressSanitizer: the cause is not known yet";

/// In the child no thread finishes what the parent's threads were doing to the tables of memory.
TEST(Forks, TheChildDoesNotWaitForThreadsOfTheParent) {
  if (!may_fork()) GTEST_SKIP() << no_fork;
  if (!is_tested) GTEST_SKIP() << known_hang;
  std::vector<PinnedMemory> others;  // a change of a long table takes longer
  for (int each = 0; each < 3000; ++each) others.emplace_back(1);
  Object<char> object(block, small_blocks());
  object[0] = 1;
  const BusyThreads busy({[] { const PinnedMemory changes_the_table(block); },
                          [&object] { static_cast<void>(object_at(object.data())); }});
  for (int repetition = 0; repetition < 50; ++repetition)
    ASSERT_EXIT(
        {
          ::alarm(20);
          const bool is_known = owner_of(object.data()).memory == Memory::object;
          object.memory().release();
          ::_exit(is_known ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

TEST(Forks, TheChildReadsFilesWhileThreadsOfTheParentDo) {
  if (!may_fork()) GTEST_SKIP() << no_fork;
  if (!is_tested) GTEST_SKIP() << known_hang;
  const std::function<void()> transfer = [] { const detail::TakenLane lane; };
  const BusyThreads busy({transfer, transfer});
  for (int repetition = 0; repetition < 50; ++repetition)
    ASSERT_EXIT(
        {
          ::alarm(20);
          transfer();
          ::_exit(0);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace

}  // namespace beeline_test::forks
