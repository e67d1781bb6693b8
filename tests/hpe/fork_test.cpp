// SPDX-License-Identifier: Apache-2.0
// Processes that are forked while threads use this layer.
#include "core/fork.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/hpe/files.hpp"
#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/object.hpp"
#include "hpe/files/lane.hpp"
#include "tests/hpe/file_folder.hpp"
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

/// In the child no thread finishes what the parent's threads were doing to the tables of memory.
TEST(Forks, TheChildDoesNotWaitForThreadsOfTheParent) {
  if (!may_fork()) GTEST_SKIP() << no_fork;
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

TEST(Forks, TheChildHasValuesThatAnotherThreadWasMaking) {
  if (!may_fork()) GTEST_SKIP() << no_fork;
  static constinit beeline::detail::ProcessValue<int> value;
  std::atomic<bool> is_begun{false};
  const std::jthread maker([&] {
    static_cast<void>(value.get([&] {
      is_begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return 1;
    }));
  });
  while (!is_begun) std::this_thread::yield();
  ASSERT_EXIT(
      {
        ::alarm(20);
        ::_exit(value.get([] { return 2; }) == 1 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

bool reads_a_file() {
  try {
    std::vector<char> read(block);
    return read_file("/proc/self/exe", read.data(), read.size()) == read.size();
  } catch (const beeline::Error&) {
    return false;
  }
}

/// The child uses neither the calls of the parent's transfer nor its file, which a failed write would remove.
class ForkingProgress : public testing::TestWithParam<bool> {};

TEST_P(ForkingProgress, LeavesTheTransferToTheParent) {
  if (!may_fork()) GTEST_SKIP() << no_fork;
  const FileFolder folder;
  const std::vector<char> written(block, 'x');
  pid_t child = -1;
  FileOptions options;
  options.progress = [&](std::size_t, std::size_t) {
    child = ::fork();
    if (child == 0 && GetParam()) throw beeline::Error(beeline::Status::unavailable, "thrown in the child");
    int status = 0;
    if (child != 0 && ::waitpid(child, &status, 0) == child) EXPECT_EQ(status, 0);
  };
  try {
    write_file(folder / "file", written.data(), written.size(), options);
  } catch (const beeline::Error& error) {
    if (child == 0) ::_exit(error.code() == beeline::Status::unavailable && reads_a_file() ? 0 : 1);
    throw;
  }
  if (child == 0) ::_exit(2);
  std::vector<char> read(block);
  read_file(folder / "file", read.data(), read.size());
  EXPECT_EQ(read, written);
}

INSTANTIATE_TEST_SUITE_P(Forks, ForkingProgress, testing::Bool(),
                         [](const auto& each) { return each.param ? "thrown" : "returned"; });

/// The child asks no device for the owner of its memory.
TEST(Forks, TheChildReadsFilesAfterTheParentHasLookedForDevices) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not asked for the owner of any memory
  if (!may_fork()) GTEST_SKIP() << no_fork;
  ASSERT_EXIT(
      {
        ::alarm(20);
        const pid_t child = ::fork();
        if (child == 0) ::_exit(reads_a_file() ? 0 : 1);
        int status = 0;
        const bool has_ended = ::waitpid(child, &status, 0) == child;
        ::_exit(has_ended && status == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace

}  // namespace beeline_test::forks
