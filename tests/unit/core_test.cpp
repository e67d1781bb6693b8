// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/core/log.hpp"
#include "beeline/core/registry.hpp"
#include "beeline/core/status.hpp"
#include "beeline/core/version.hpp"
#include "beeline/host/run.hpp"
#include "beeline/selection/preferences.hpp"
#include "tests/support/errors.hpp"

namespace beeline {

namespace {

template <class Enumeration>
void expect_names_of_their_own(Enumeration last) {
  std::set<std::string> names;
  for (std::uint32_t each = 0; each <= static_cast<std::uint32_t>(last); ++each)
    names.insert(name(static_cast<Enumeration>(each)));
  EXPECT_EQ(static_cast<std::size_t>(last) + 1, names.size());
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Status, EveryCodeHasANameOfItsOwn) {
  expect_names_of_their_own(Status::internal);
  EXPECT_STREQ("unknown", name(static_cast<Status>(999)));
}

TEST(Version, HeadersAndLibraryThatDifferRefuseEachOther) {
  const Version mine = detail::world_headers;
  const Version newer{mine.number + 1, mine.layout}, other_sizes{mine.number, mine.layout + 1};
  for (const Version& headers : {newer, other_sizes})
    beeline_test::check_error(Status::unavailable,
                              {"headers of Beeline " + headers.text(), "library of Beeline " + mine.text()},
                              [&] { static_cast<void>(World::create(Config{}, headers)); });
  EXPECT_EQ(1, run(
                   Config{}, [](World&) { FAIL(); }, newer));
  EXPECT_EQ("0.1.0 (interface 7)", (Version{100'007, 0}.text()));
  beeline_test::check_error(Status::unavailable, {"Config::from_environment"},
                            [&] { static_cast<void>(Config::from_environment(newer)); });
}

TEST(Status, OkAndInProgressAreNoFailures) {
  EXPECT_FALSE(failed(Status::ok));
  EXPECT_FALSE(failed(Status::in_progress));
  EXPECT_TRUE(failed(Status::timeout));
  EXPECT_TRUE(failed(Status::deadline));
}

TEST(Operation, EveryOneHasANameOfItsOwn) { expect_names_of_their_own(Operation::receive); }

TEST(Error, SaysCodeRankAndPlace) {
  const Error error(Status::deadline, "nobody came", 3);
  EXPECT_STREQ("deadline: rank 3: nobody came", error.what());
  EXPECT_EQ(Status::deadline, error.code());
  EXPECT_EQ(3, error.rank());
  EXPECT_NE(std::string::npos, std::string(error.where().file_name()).find("core_test"));
  EXPECT_STREQ("internal: oops", Error(Status::internal, "oops").what());
}

TEST(Error, RequireThrowsOnlyWhenItDoesNotHold) {
  EXPECT_NO_THROW(require(true, Status::internal, "fine"));
  EXPECT_THROW(require(false, Status::internal, "not fine"), Error);
}

TEST(Registry, RowsDiffer) {
  std::set<std::tuple<Operation, std::string, Schedule>> rows;
  std::set<std::string> ids;
  std::size_t count = 0;
  for (const MethodRow& row : method_rows)
    for (const Control control :
         {Control::host, Control::stream, Control::proxy, Control::triggered, Control::device}) {
      if (!row.is_by(control)) continue;
      const std::string id = row.method(control).id();
      rows.insert({row.operation, id, info_of(row.algorithm).schedule});
      ids.insert(id);
      ++count;
      EXPECT_TRUE(has_algorithm(row.operation, row.algorithm, control));
    }
  EXPECT_EQ(count, rows.size());
  EXPECT_TRUE(ids.contains("device/peer/ll"));
  EXPECT_TRUE(ids.contains("host/staged/pipelined"));
  EXPECT_TRUE(ids.contains("host/hybrid/pipelined"));
  EXPECT_TRUE(ids.contains("proxy/peer/signal"));
  EXPECT_FALSE(has_algorithm(Operation::allreduce, Algorithm::peer, Control::stream));
  EXPECT_FALSE(has_algorithm(Operation::allreduce, Algorithm::copy_engine, Control::device));
}

/// Without lines, and if copy engines may write in place, two GPUs broadcast as they move other data.
TEST(Preferences, BroadcastsOfTwoGpus) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  const auto chosen = [](const Situation& here, std::size_t bytes) {
    return choose_on_stream(Operation::broadcast, here, bytes, bytes);
  };
  Situation here{.members = 2};
  EXPECT_EQ(Algorithm::ll, chosen(here, 8));
  EXPECT_EQ(Algorithm::peer, chosen(here, 8 * mib));
  here.has_lines = true;
  EXPECT_EQ(Algorithm::ll128, chosen(here, mib));
  EXPECT_EQ(Algorithm::peer, chosen(here, 8 * mib));
  EXPECT_EQ(Algorithm::peer, chosen(here, 128 * mib));
  here.has_engines = here.knows_symmetric = true;
  EXPECT_EQ(Algorithm::peer, chosen(here, 8 * mib));
  EXPECT_EQ(Algorithm::copy_engine, chosen(here, 128 * mib));
}

/// Between two nodes each node sends a vector once, by any algorithm.
TEST(Preferences, LongVectorsOfManyNodes) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  using enum Algorithm;
  for (const std::uint32_t nodes : {2u, 3u, 8u}) {
    const Situation here{.members = 16, .on_hosts = true, .nodes = nodes};
    const auto chosen = [&](Operation operation, std::size_t bytes) {
      return choose_on_stream(operation, here, bytes, bytes / 4);
    };
    EXPECT_EQ(across_nodes, chosen(Operation::allreduce, 8)) << "fewer elements than members";
    for (const Operation operation : {Operation::allreduce, Operation::reduce, Operation::broadcast}) {
      EXPECT_EQ(across_nodes, chosen(operation, 32 * 1024));
      const Algorithm of_many = operation == Operation::broadcast ? chain_across_nodes : two_shot_across_nodes;
      EXPECT_EQ(nodes == 2 ? across_nodes : of_many, chosen(operation, mib));
    }
    EXPECT_EQ(across_nodes, chosen(Operation::allgather, mib));
    EXPECT_EQ(across_nodes, chosen(Operation::reduce_scatter, mib));
  }
}

/// For operations that move data, the number of blocks follows from all bytes that go to other ranks.
TEST(Preferences, BlocksFollowFromWhatKeepsThemBusy) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  Situation here{.members = 4};
  EXPECT_EQ(48u, choose_blocks(Operation::alltoall, Algorithm::peer, here, mib / 2, 1000));
  EXPECT_EQ(64u, choose_blocks(Operation::alltoall, Algorithm::peer, here, mib, 1000));
  EXPECT_EQ(64u, choose_blocks(Operation::alltoallv, Algorithm::peer, here, mib, 1000));
  EXPECT_EQ(32u, choose_blocks(Operation::reduce, Algorithm::two_shot, here, 16 * mib, 1000));
  EXPECT_EQ(128u, choose_blocks(Operation::reduce, Algorithm::two_shot, here, 64 * mib, 1000));
  EXPECT_EQ(64u, choose_blocks(Operation::allreduce, Algorithm::two_shot, here, 4 * mib, 1000));
  EXPECT_EQ(128u, choose_blocks(Operation::allreduce, Algorithm::two_shot, here, 64 * mib, 1000));
  EXPECT_EQ(128u, choose_blocks(Operation::broadcast, Algorithm::peer, here, mib, 1000)) << "96 would take more";
  EXPECT_EQ(10u, choose_blocks(Operation::alltoall, Algorithm::peer, here, mib, 10));
  here.members = 2;
  EXPECT_EQ(32u, choose_blocks(Operation::alltoall, Algorithm::peer, here, mib, 1000));
  EXPECT_EQ(64u, choose_blocks(Operation::alltoall, Algorithm::peer, here, 4 * mib, 1000));
  EXPECT_EQ(64u, choose_blocks(Operation::allreduce, Algorithm::two_shot, here, 4 * mib, 1000));
  EXPECT_EQ(64u, choose_blocks(Operation::allreduce, Algorithm::two_shot, here, 8 * mib, 1000));
  EXPECT_EQ(128u, choose_blocks(Operation::allreduce, Algorithm::two_shot, here, 10 * mib, 1000));
  EXPECT_EQ(128u, choose_blocks(Operation::allreduce, Algorithm::two_shot, here, 64 * mib, 1000));
  EXPECT_EQ(64u, choose_blocks(Operation::allreduce, Algorithm::two_shot, here, 64 * mib, 64));
  here.members = 8;
  EXPECT_EQ(24u, choose_blocks(Operation::allreduce, Algorithm::two_shot, here, 64 * mib, 1000));
  here.on_hosts = true;
  EXPECT_EQ(1u, choose_blocks(Operation::alltoall, Algorithm::peer, here, mib, 1000));
}

TEST(Registry, AlgorithmsHaveNames) {
  std::set<std::string> names;
  for (std::uint32_t algorithm = 0; algorithm < algorithms; ++algorithm)
    names.insert(name(static_cast<Algorithm>(algorithm)));
  EXPECT_EQ(algorithms, names.size());
  EXPECT_STREQ("unknown", name(static_cast<Algorithm>(algorithms)));
}

TEST(Log, LevelsIncludeTheGraverOnes) {
  set_log_level(LogLevel::info);
  EXPECT_TRUE(log_enabled(LogLevel::error));
  EXPECT_TRUE(log_enabled(LogLevel::info));
  EXPECT_FALSE(log_enabled(LogLevel::debug));
  set_log_level(LogLevel::warning);
  EXPECT_FALSE(log_enabled(LogLevel::info));
}

TEST(Log, AtOnceDoesNotWaitForWhoeverReads) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(0, ::pipe2(pipe.data(), O_NONBLOCK | O_CLOEXEC));
  std::array<char, 4096> some{};
  while (::write(pipe[1], some.data(), some.size()) > 0) {
  }
  const int standard_error = ::dup(STDERR_FILENO);
  ::dup2(pipe[1], STDERR_FILENO);
  const bool into_full_pipe = log_at_once(LogLevel::warning, "a line");
  while (::read(pipe[0], some.data(), some.size()) > 0) {
  }
  const bool into_empty_pipe = log_at_once(LogLevel::warning, "a line", 3);
  ::dup2(standard_error, STDERR_FILENO);
  const ssize_t bytes = ::read(pipe[0], some.data(), some.size());
  for (const int each : {pipe[0], pipe[1], standard_error}) ::close(each);
  EXPECT_FALSE(into_full_pipe);
  EXPECT_TRUE(into_empty_pipe);
  EXPECT_EQ("beeline[3] warning: a line\n",
            std::string(some.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))));
}

TEST(Layout, AbortWordsAreNeverZero) {
  EXPECT_EQ(1u, abort_word(0));
  EXPECT_EQ(64u, abort_word(63));
}

}  // namespace

}  // namespace beeline
