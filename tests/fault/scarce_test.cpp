// SPDX-License-Identifier: Apache-2.0
// Worlds that exceed a process's limits: every rank soon gets an error that names the limit.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "beeline/device/put_get.hpp"
#include "beeline/host/run.hpp"
#include "beeline/host/world.hpp"
#include "beeline/runtime/device.hpp"
#include "tests/support/check.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

Config host_config() {
  Config config = test_config();
  config.device = "cpu";
  return config;
}

void limit(__rlimit_resource resource, rlim_t value) {
  const rlimit both{value, value};
  BEELINE_CHECK_EQ(0, setrlimit(resource, &both));
}

TEST(AddressSpace, TooLittleIsNamed) {
  if (sanitized) GTEST_SKIP() << "a sanitizer's own memory needs the address space";
  const Stopwatch stopwatch;
  expect_all_passed(run_processes(
      3,
      [](const Config& config) {
        if (config.rank == 1) limit(RLIMIT_AS, rlim_t{1} << 33);
        check_error(Status::no_resource, {"no address range for 3 slots of 2^38 bytes", "limit on virtual memory"},
                    [&] { static_cast<void>(World::create(config)); });
      },
      host_config(), 60));
  EXPECT_LT(stopwatch.seconds(), 5);
}

/// Checks that every rank of a world with the chosen heaps throws an error of this code with these words.
void refuse_heaps(const std::function<void(Config&)>& choose, Status code,
                  std::initializer_list<std::string_view> words) {
  const Stopwatch stopwatch;
  expect_all_passed(run_processes(
      2,
      [&](Config config) {
        choose(config);
        check_error(code, words, [&] { static_cast<void>(World::create(config)); });
      },
      host_config(), 60));
  EXPECT_LT(stopwatch.seconds(), 5);
}

/// Makes a world of two ranks with the chosen heaps, checks the shift of its slots, and puts over their whole distance.
void check_slots(std::uint32_t shift, const std::function<void(Config&)>& choose) {
  expect_all_passed(run_processes(
      2,
      [&](Config config) {
        choose(config);
        const std::unique_ptr<World> world = World::create(config);
        BEELINE_CHECK_EQ(shift, world->config().slot_shift);
        const SymmetricArray<int> word(*world, 1);
        const int mine = world->rank();
        BEELINE_CHECK(put(Thread{}, world->host_context(), word.data(), &mine, 1, 1 - world->rank()) == Status::ok);
        world->barrier();
        BEELINE_CHECK_EQ(1 - world->rank(), *word.data());
      },
      host_config(), 60));
}

TEST(LargeHeap, HasLargerSlots) {
  check_slots(33, [](Config& config) { config.slot_shift = 32, config.heap_bytes = std::size_t{1} << 30; });
  check_slots(33, [](Config& config) { config.slot_shift = 32, config.pinned_heap_bytes = std::size_t{1} << 29; });
  if (sanitized) GTEST_SKIP() << "a sanitizer's own memory needs the address space";
  check_slots(max_slot_shift, [](Config& config) { config.slot_shift = max_slot_shift; });
}

TEST(HeapThatDoesNotFit, NamesTheMemory) {
  const std::size_t machine = host_device().memory_bytes;
  // Two ranks, each with more than half of the memory.
  refuse_heaps([&](Config& config) { config.heap_bytes = machine / 2 + 4096; }, Status::no_resource,
               {"symmetric heaps of", "for 2 host ranks are more than", "memory", "lower BEELINE_HEAP_BYTES"});
  refuse_heaps([&](Config& config) { config.pinned_heap_bytes = machine + 4096; }, Status::no_resource,
               {"a pinned heap of", "is more than", "memory", "lower BEELINE_PINNED_HEAP_BYTES"});
}

TEST(HeapThatDoesNotFit, NamesTheLimitOnFiles) {
  refuse_heaps(
      [](Config& config) {
        config.heap_bytes = std::size_t{256} << 20;
        if (config.rank == 1) limit(RLIMIT_FSIZE, rlim_t{128} << 20);
      },
      Status::no_resource, {"rank 1 could not make its part", "134217728 bytes", "ulimit -f", "BEELINE_HEAP_BYTES"});
}

TEST(OpenFiles, TooFewAreNamed) {
  const Stopwatch stopwatch;
  ChildProcess child([](const std::string&) {
    limit(RLIMIT_NOFILE, 48);
    std::string failures;
    for (const RankOutcome& outcome : run_ranks(
             WorldKind::threads, 16, [](World& world) { world.barrier(); }, host_config(), 60)) {
      BEELINE_CHECK_CONTAINS(outcome.failure, "Too many open files");
      failures += outcome.failure + "\n";
    }
    return failures;
  });
  child.tell("");
  while (!child.read_more()) {
  }
  EXPECT_EQ(0, child.exit_code()) << child.answer();
  EXPECT_LT(stopwatch.seconds(), 5);
}

TEST(RanksThatAreThreads, TooManyAreNamed) {
  if (sanitized) GTEST_SKIP() << "a sanitizer's own memory needs the address space";
  const Stopwatch stopwatch;
  ChildProcess child([](const std::string&) {
    limit(RLIMIT_AS, rlim_t{1} << 30);  // every thread needs a stack
    Config config = host_config();
    config.threads = true;
    config.size = 200;
    ::testing::internal::CaptureStderr();
    const int code = run(config, [](World&) {});
    const std::string error = ::testing::internal::GetCapturedStderr();
    BEELINE_CHECK_EQ(1, code);
    BEELINE_CHECK_CONTAINS(error, "beeline error: no_resource: no thread for rank ");
    BEELINE_CHECK_CONTAINS(error, " of 200: Resource temporarily unavailable; limits: ");
    BEELINE_CHECK_CONTAINS(error, "1073741824 bytes of addresses (ulimit -v)");
    return std::string();
  });
  child.tell("");
  while (!child.read_more()) {
  }
  EXPECT_EQ(0, child.exit_code()) << child.answer();
  EXPECT_LT(stopwatch.seconds(), 5);
}

}  // namespace

}  // namespace beeline_test
