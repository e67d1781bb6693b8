// SPDX-License-Identifier: Apache-2.0
// Worlds and teams that end before a deadline of their own: by the launcher, one rank's error, or one team's deadline.
// Ranks that this concerns end soon and give the reason; the others continue.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::world_end_test {

namespace {

using namespace beeline;

constexpr double soon_s = 5;  // the deadline is 20 s

Config host_config() {
  Config config = test_config();
  config.device = "cpu";
  return config;
}

/// Three ranks over TCP repeat barriers until `end` has ended their world.
void end_world(const std::function<void(std::optional<RendezvousServer>&)>& end, const std::string& reason) {
  constexpr int ranks = 3;
  const std::string token = make_token();
  std::optional<RendezvousServer> server;
  server.emplace(RendezvousServer::Options{ranks, token});
  std::vector<std::string> failures(ranks);
  std::vector<std::thread> threads;
  std::atomic<int> worlds{0};
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank, address = server->address()] {
      Config config = host_config();
      config.rank = rank;
      config.size = ranks;
      config.rendezvous = address;
      config.token = token;
      try {
        const std::unique_ptr<World> world = World::create(config);
        ++worlds;
        check_error(Status::aborted, {"the world ended", reason}, [&] {
          for (;;) world->barrier();
        });
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (const Stopwatch set_up; worlds < ranks && set_up.seconds() < 20;) usleep(1000);
  const Stopwatch stopwatch;
  end(server);
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(stopwatch.seconds(), soon_s);
  for (const std::string& failure : failures) EXPECT_EQ("", failure);
}

TEST(LaunchersEnd, ReachesEveryRank) {
  end_world([](std::optional<RendezvousServer>& server) { server->abort(-1, "the launcher got SIGINT"); },
            "the launcher got SIGINT");
}

TEST(LaunchersEnd, WithoutAWordToo) {
  end_world([](std::optional<RendezvousServer>& server) { server.reset(); }, "the launcher has ended");
}

TEST(RanksError, EndsTheOthersAndIsTheirReason) {
  const Stopwatch stopwatch;
  const auto outcomes = run_ranks(
      WorldKind::threads, 4,
      [](World& world) {
        if (world.rank() == 1) {
          world.barrier();
          throw std::runtime_error("the input file is empty");
        }
        check_error(Status::peer_died, {"rank 1", "the input file is empty"}, [&] {
          world.barrier();  // rank 1 may have left it, and be gone, while others are still in it
          world.barrier();
        });
      },
      host_config(), 60);
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(rank == 1 ? "the input file is empty" : "", outcomes[static_cast<std::size_t>(rank)].failure);
  EXPECT_LT(stopwatch.seconds(), soon_s);
}

TEST(RanksError, InSetUpEndsTheOthers) {
  const Stopwatch stopwatch;
  Config config = host_config();
  const auto outcomes = run_processes(
      3,
      [](Config own) {
        if (own.rank == 1) own.heap_bytes += 4096;
        check_error(Status::invalid_argument, {"they must agree", "rank"},
                    [&] { static_cast<void>(World::create(own)); });
      },
      config, 60);
  expect_all_passed(outcomes);
  EXPECT_LT(stopwatch.seconds(), soon_s);
}

/// One team's deadline passes while the other team works; then the world creates the first team again.
TEST(TeamsDeadline, LeavesTheOtherTeamAloneAndIsCleared) {
  Config config = host_config();
  config.deadline_ns = 1'500'000'000;
  std::atomic<bool> failed_team{false};
  std::atomic<int> last_round{1 << 30};
  expect_all_passed(run_ranks(
      WorldKind::threads, 4,
      [&](World& world) {
        const bool first = world.rank() < 2;
        const std::vector<int> members = first ? std::vector<int>{0, 1} : std::vector<int>{2, 3};
        std::unique_ptr<Team> team = world.make_team(members);
        const Stopwatch stopwatch;
        if (world.rank() == 0) {
          check_error(Status::deadline, {"rank 0: barrier on rank 1"}, [&] { team->barrier(); });
          failed_team = true;
        }
        if (world.rank() == 1) {
          while (!team->failed() && stopwatch.seconds() < 10) usleep(1000);
          check_error(Status::aborted, {"rank 0: barrier on rank 1"}, [&] { team->barrier(); });
        }
        for (int round = 0; !first && round <= last_round; ++round) {  // both ranks as often
          team->barrier();
          usleep(1000);
          if (world.rank() == 2 && failed_team && last_round > round + 20) last_round = round + 20;
        }
        BEELINE_CHECK_EQ(first, team->failed());
        BEELINE_CHECK(!world.failed());
        world.barrier();
        team.reset();
        team = world.make_team(members);
        BEELINE_CHECK(!team->failed());
        for (int i = 0; i < 10; ++i) team->barrier();
        BEELINE_CHECK(world.failed_waits().empty());
        world.barrier();
      },
      config, 60));
}

}  // namespace

}  // namespace beeline_test::world_end_test
