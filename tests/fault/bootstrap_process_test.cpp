// SPDX-License-Identifier: Apache-2.0
/// @file
/// Bootstraps of ranks that are processes, also when one of them dies.

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <future>

#include "../unit/bootstrap_worlds.hpp"

namespace beeline::tests {

namespace {

/// Forks `size` ranks that run `body`; returns their exit statuses as waitpid gives them. A rank whose body throws, or
/// fails an expectation, exits with 1.
std::vector<int> run_processes(int size, const Body& body) {
  const std::string token = make_token();
  const RendezvousServer server({size, token});
  std::vector<pid_t> pids;
  for (int rank = 0; rank < size; ++rank) {
    pids.push_back(::fork());
    if (pids.back() != 0) continue;
    try {
      body(*join_world(config_for(server, token, rank, size)));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      ::_exit(1);
    }
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  std::vector<int> statuses;
  for (const pid_t pid : pids) ::waitpid(pid, &statuses.emplace_back(), 0);
  return statuses;
}

class Processes : public ::testing::TestWithParam<int> {};

TEST_P(Processes, ShareBytesAndDescriptors) {
  const auto statuses = run_processes(GetParam(), [](Bootstrap& bootstrap) {
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
  for (const int status : statuses) EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Processes, ::testing::Values(1, 2, 5, 64));

TEST(Processes, ADeathInSetUpFreesTheOthersAndIsNamed) {
  const auto statuses = run_processes(4, [](Bootstrap& bootstrap) {
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
    const int status = statuses[static_cast<std::size_t>(rank)];
    if (rank == 2) {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    } else {
      EXPECT_EQ(status, 0) << "rank " << rank;
    }
  }
}

}  // namespace

}  // namespace beeline::tests
