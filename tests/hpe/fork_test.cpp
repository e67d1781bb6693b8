// SPDX-License-Identifier: Apache-2.0
// Processes that are forked while threads use this layer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/object.hpp"
#include "tests/hpe/object_cases.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::forks {

namespace {

using namespace beeline::hpe;

/// Threads that allocate and look up memory until the object ends.
class BusyThreads {
 public:
  explicit BusyThreads(const Object<char>& object) {
    threads_.emplace_back([this] {
      while (!are_over_) const PinnedMemory changes_the_table(block);
    });
    threads_.emplace_back([this, &object] {
      while (!are_over_) static_cast<void>(object_at(object.data()));
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

/// In the child no thread finishes what the parent's threads were doing to the tables of memory.
TEST(Forks, TheChildDoesNotWaitForThreadsOfTheParent) {
  if (under_thread_sanitizer || !Device::gpus().empty())
    GTEST_SKIP() << "a process that uses CUDA or ThreadSanitizer does not fork";
  std::vector<PinnedMemory> others;  // a change of a long table takes longer
  for (int each = 0; each < 3000; ++each) others.emplace_back(1);
  Object<char> object(block, small_blocks());
  object[0] = 1;
  const BusyThreads busy(object);
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

}  // namespace

}  // namespace beeline_test::forks
