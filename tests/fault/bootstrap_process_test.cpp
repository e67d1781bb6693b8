// SPDX-License-Identifier: Apache-2.0
/// @file
/// Bootstraps of ranks that are processes, also if one of them dies.

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <future>
#include <stdexcept>

#include "../unit/bootstrap_worlds.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/ranks.hpp"

namespace beeline::tests {

namespace {

using beeline_test::RankOutcome;

/// Runs `body` as `size` ranks that are processes. A rank fails if its body throws or fails an expectation.
std::vector<RankOutcome> run_bootstraps(int size, const Body& body) {
  constexpr int limit_s = 60;
  Config config;
  config.deadline_ns = generous_ns;
  return beeline_test::run_processes(
      size,
      [&](const Config& own) {
        body(*join_world(own));
        if (::testing::Test::HasFailure()) throw std::runtime_error("an expectation failed");
      },
      config, limit_s);
}

class Processes : public ::testing::TestWithParam<int> {};

TEST_P(Processes, ShareBytesAndDescriptors) {
  const auto outcomes = run_bootstraps(GetParam(), [](Bootstrap& bootstrap) {
    const FileDescriptor mine(::memfd_create("beeline-test", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(mine.get(), 4096), 0);
    for (int round = 0; round < 2; ++round) {
      const std::vector<FileDescriptor> all = bootstrap.exchange_descriptors(mine.get(), generous_ns);
      for (int rank = 0; rank < bootstrap.size(); ++rank) {
        const char value = static_cast<char>(bootstrap.rank() + round);
        EXPECT_EQ(::pwrite(all[static_cast<std::size_t>(rank)].get(), &value, 1, bootstrap.rank()), 1);
      }
      bootstrap.barrier(generous_ns);
      for (int rank = 0; rank < bootstrap.size(); ++rank) {
        char value = 0;
        EXPECT_EQ(::pread(mine.get(), &value, 1, rank), 1);
        EXPECT_EQ(value, static_cast<char>(rank + round));
      }
      bootstrap.barrier(generous_ns);
    }
  });
  beeline_test::expect_all_passed(outcomes);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Processes, ::testing::Values(1, 2, 5, 64));

TEST(Processes, ADeathInSetUpFreesTheOthersAndIsNamed) {
  const auto outcomes = run_bootstraps(4, [](Bootstrap& bootstrap) {
    std::promise<int> told;
    bootstrap.on_abort([&](int culprit, const std::string&) { told.set_value(culprit); });
    if (bootstrap.rank() == 2) ::kill(::getpid(), SIGKILL);
    const Error error = error_of([&] { (void)bootstrap.exchange_descriptors(-1, generous_ns); });
    EXPECT_EQ(error.code(), Status::peer_died);
    EXPECT_TRUE(mentions(error, "rank 2 ended without leaving the world")) << error.what();
    EXPECT_EQ(told.get_future().get(), 2);
    bootstrap.on_abort(nullptr);
  });
  for (int rank = 0; rank < 4; ++rank) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.signal, rank == 2 ? SIGKILL : 0) << "rank " << rank;
    EXPECT_EQ(outcome.failure, "") << "rank " << rank;
  }
}

/// The fork has the sockets of rank 0, which serves the world, unless they were closed in it.
TEST(Processes, TheEndOfRankZeroIsSeenThoughAForkOfItGoesOn) {
  Config config;
  config.size = 2, config.deadline_ns = generous_ns;
  config.launcher.job = make_token();
  std::array<int, 2> test_lives{};
  ASSERT_EQ(::pipe(test_lives.data()), 0);
  beeline_test::ChildProcess first([&](const std::string&) {
    const auto bootstrap = join_world(config);
    if (::fork() == 0) {
      ::close(test_lives[1]);
      [[maybe_unused]] const ssize_t got = ::read(test_lives[0], &config, 1);  // returns when the test ends
      ::_exit(0);
    }
    bootstrap->barrier(generous_ns);
    ::pause();
    return std::string();
  });
  first.tell("");
  config.rank = 1;
  const auto bootstrap = join_world(config);
  bootstrap->barrier(generous_ns);
  first.kill();
  const Error error = error_of([&] { bootstrap->barrier(3'000'000'000); });
  EXPECT_EQ(error.code(), Status::peer_died) << error.what();
  EXPECT_TRUE(mentions(error, "rank 0 ended without leaving the world")) << error.what();
  for (const int each : test_lives) ::close(each);
}

}  // namespace

}  // namespace beeline::tests
