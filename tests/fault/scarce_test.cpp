// SPDX-License-Identifier: Apache-2.0
// Worlds that a process's limits do not allow: every rank gets an error that says which limit, soon.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "beeline/host/world.hpp"
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

}  // namespace

}  // namespace beeline_test
