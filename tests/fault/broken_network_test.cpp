// SPDX-License-Identifier: Apache-2.0
// What happens to remaining ranks, memory and failure reports when a rank of another node fails or receives nothing.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/host/paths.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/split_nodes.hpp"
#include "tests/support/stopped_process.hpp"

namespace beeline_test::broken_network_test {

namespace {

using namespace beeline;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int ranks = 4;

/// Tests over UCX, and over TCP sockets.
class SurvivorsAcrossNodes : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, SurvivorsAcrossNodes, ::testing::Values("ucx", "sockets"),
                         [](const auto& transport) { return std::string(transport.param); });

void expect_first_three_passed(const std::vector<RankOutcome>& outcomes) {
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(outcomes[rank].passed()) << outcomes[rank].failure;
}

/// Uses what every remaining rank can do: commands to the others, barriers, new memory.
void go_on(World& world, const std::vector<int>& expected) {
  Team& team = world.survivors();
  BEELINE_CHECK_EQ(expected.size(), static_cast<std::size_t>(team.size()));
  for (std::size_t member = 0; member < expected.size(); ++member)
    BEELINE_CHECK_EQ(expected[member], team.world_rank(static_cast<int>(member)));
  SymmetricArray<std::uint64_t> words(world, ranks);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    for (std::uint32_t member = 0; member < expected.size(); ++member)
      put_value(team.host_context(), words.data() + world.rank(), round, member);
    BEELINE_CHECK(quiet(Thread{}, team.host_context()) == Status::ok);
    world.barrier();
    for (const int other : expected) BEELINE_CHECK_EQ(round, words.data()[other]);
    world.barrier();
  }
}

TEST_P(SurvivorsAcrossNodes, GoOnWhileCommandsWereUnderWayToTheDead) {
  SKIP_WITHOUT(GetParam());
  const auto outcomes = run_processes(
      ranks,
      [](const Config& config) {
        const std::unique_ptr<World> world = World::create(config);
        SymmetricArray<std::uint64_t> words(*world, ranks);
        std::vector<std::uint64_t> rows(100'000);
        SymmetricArray<std::uint64_t> table(*world, 2 * rows.size());
        const StridedShape apart{.count = rows.size(), .block_length = 1, .destination_stride = 2, .source_stride = 1};
        try {
          world->barrier();  // some may still be in it when the first leaves it and fails
          if (config.rank == 3) {
            std::this_thread::sleep_for(50ms);
            ::kill(::getpid(), SIGKILL);
          }
          for (std::uint64_t round = 1;; ++round) {
            put_value(world->host_context(), words.data() + config.rank, round, 3);
            static_cast<void>(put_strided(Thread{}, world->host_context(), table.data(), rows.data(), apart, 3));
            world->check();
          }
        } catch (const Error& error) {
          BEELINE_CHECK_CONTAINS(error.what(), "rank 3 ended");
        }
        BEELINE_CHECK(world->health()[3].state == RankState::failed);
        go_on(*world, {0, 1, 2});
      },
      split_config(20'000'000'000, GetParam()));
  expect_first_three_passed(outcomes);
  EXPECT_EQ(SIGKILL, outcomes[3].signal);
}

/// Ends every TCP connection of this process except that to the rendezvous.
void break_connections(const std::string& rendezvous) {
  const int kept = std::stoi(rendezvous.substr(rendezvous.rfind(':') + 1));
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    sockaddr_in peer{};
    socklen_t bytes = sizeof peer;
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0 && peer.sin_family == AF_INET &&
        ntohs(peer.sin_port) != kept)
      ::shutdown(descriptor, SHUT_RDWR);
  }
}

TEST_P(SurvivorsAcrossNodes, LeaveOutTheHigherRankOfABrokenConnection) {
  SKIP_WITHOUT(GetParam());
  expect_all_passed(run_processes(
      ranks,
      [](const Config& config) {
        const std::unique_ptr<World> world = World::create(config);
        try {
          world->barrier();
          if (config.rank == 3) break_connections(config.rendezvous);
          for (;;) world->barrier();
        } catch (const Error& error) {
          BEELINE_CHECK_CONTAINS(error.what(), "lost its connection to rank");
        }
        if (config.rank != 3) return go_on(*world, {0, 1, 2});
        try {
          static_cast<void>(world->survivors());
          throw CheckFailure("no error");
        } catch (const Error& error) {
          BEELINE_CHECK(error.code() == Status::unreachable);
          BEELINE_CHECK_CONTAINS(error.what(), "rank 3 is not among those that are left");
        }
      },
      split_config(20'000'000'000, GetParam())));
}

/// A rank that takes part in the agreement, and whose process then stands still for longer than a second, is not lost.
TEST_P(SurvivorsAcrossNodes, GoOnWithARankThatIsStoppedForAWhile) {
  SKIP_WITHOUT(GetParam());
  expect_all_passed(run_processes(
      ranks,
      [](const Config& config) {
        const std::unique_ptr<World> world = World::create(config);
        const SymmetricArray<std::uint64_t> word(*world, 1);
        const auto pid = static_cast<std::uint64_t>(::getpid());
        const auto pids = world->allgather(std::as_bytes(std::span(&pid, 1)));
        std::jthread continuing;
        if (config.rank == 0) {
          std::uint64_t last = 0;
          std::memcpy(&last, pids[ranks - 1].data(), sizeof last);
          std::this_thread::sleep_for(300ms);  // it asks for the survivors meanwhile
          ::kill(static_cast<pid_t>(last), SIGSTOP);
          put_value(world->host_context(), word.data(), std::uint64_t{1}, ranks - 1);
          continuing = std::jthread([last] {
            std::this_thread::sleep_for(1500ms);
            ::kill(static_cast<pid_t>(last), SIGCONT);
          });
        }
        go_on(*world, {0, 1, 2, 3});
      },
      split_config(20'000'000'000, GetParam()), 60));
}

TEST(RefusalAcrossNodes, IsTheEndOfItsSenderAlone) {
  SKIP_WITHOUT("sockets");
  expect_all_passed(run_ranks(
      WorldKind::processes, ranks,
      [](World& world) {
        const Segment segment = world.create_segment(MemoryKind::host, 4096);
        auto* const place =
            reinterpret_cast<std::uint64_t*>(segment.parts[static_cast<std::size_t>(world.rank())].address);
        world.destroy_segment(segment.id);
        const auto start = Clock::now();
        try {
          world.barrier();
          std::uint64_t value = 0;
          if (world.rank() == 0 && get(Thread{}, world.host_context(), &value, place, 1, 2) != Status::ok)
            world.check();
          world.barrier();
          throw CheckFailure("no error");
        } catch (const Error& error) {
          BEELINE_CHECK_CONTAINS(error.what(), "rank 2's engine refused: get of 1 x 8 bytes");
        }
        BEELINE_CHECK(Clock::now() - start < 3s);  // the deadline is 20 s
        if (world.rank() == 0) {                   // its engine has failed: to the others it is gone
          BEELINE_CHECK(world.health()[1].state == RankState::healthy);
          return;
        }
        go_on(world, {1, 2, 3});
      },
      split_config(20'000'000'000, "sockets")));
}

/// Puts in flight to a segment that its owner destroys arrive or are refused; no other memory is written.
TEST(Memory, ThatIsDestroyedWhilePutsAreUnderWay) {
  SKIP_WITHOUT("sockets");
  expect_all_passed(run_ranks(
      WorldKind::processes, 2,
      [](World& world) {
        constexpr std::size_t bytes = std::size_t{8} << 20;
        const std::vector<std::byte> mine(bytes, std::byte{7});
        try {
          for (int round = 0; round < 40; ++round) {
            const Segment segment = world.create_segment(MemoryKind::host, bytes);
            auto* const own = segment.parts[static_cast<std::size_t>(world.rank())].address;
            world.barrier();
            for (int puts = 0; world.rank() == 0 && puts < 4; ++puts)
              put(Thread{}, world.host_context(), own, mine.data(), bytes, 1);
            world.destroy_segment(segment.id);
          }
          throw CheckFailure("no put was refused");
        } catch (const Error& error) {
          BEELINE_CHECK_CONTAINS(error.what(), "rank 1's engine refused: put of 1 x 8388608 bytes");
        }
      },
      split_config(20'000'000'000, "sockets")));
}

/// A rank that receives nothing holds no memory of the others once they have got their errors.
TEST(Sources, AreFreeOnceAnAbortIsKnown) {
  SKIP_WITHOUT_UCX();
  Config all = split_config(3'000'000'000);
  all.heap_bytes = std::size_t{128} << 20;
  const auto outcomes = run_processes(
      ranks,
      [](const Config& config) {
        const std::unique_ptr<World> world = World::create(config);
        constexpr std::size_t bytes = std::size_t{64} << 20;
        SymmetricArray<std::byte> data(*world, bytes);
        SymmetricArray<std::uint64_t> pids(*world, 1);
        world->barrier();
        if (config.rank == 3) {
          put_value(world->host_context(), pids.data(), static_cast<std::uint64_t>(::getpid()), 0);
          static_cast<void>(quiet(Thread{}, world->host_context()));
          ::raise(SIGSTOP);
          std::this_thread::sleep_for(5s);  // data that arrive are taken now
          return;
        }
        if (config.rank != 0) {
          try {
            world->barrier();
          } catch (const Error&) {
          }
          return;
        }
        BEELINE_CHECK(wait(Thread{}, world->host_context(), pids.data(), Compare::not_equal, 0, 3) == Status::ok);
        await_stop(static_cast<pid_t>(pids.data()[0]));
        void* const source = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        BEELINE_CHECK(source != MAP_FAILED);
        try {
          put(Thread{}, world->host_context(), data.data(), static_cast<const std::byte*>(source), bytes, 3);
          static_cast<void>(quiet(Thread{}, world->host_context()));
          world->check();
          throw CheckFailure("no error");
        } catch (const Error& error) {
          BEELINE_CHECK_CONTAINS(error.what(), "on rank 3");
        }
        ::munmap(source, bytes);
        ::kill(static_cast<pid_t>(pids.data()[0]), SIGCONT);
        std::this_thread::sleep_for(500ms);  // meanwhile the engine's thread works
        ::kill(static_cast<pid_t>(pids.data()[0]), SIGKILL);
      },
      all);
  expect_first_three_passed(outcomes);
}

/// A rank that is always busy with incoming data still learns of failures.
TEST(News, ArriveUnderTraffic) {
  SKIP_WITHOUT("sockets");
  expect_all_passed(run_ranks(
      WorldKind::processes, ranks,
      [](World& world) {
        SymmetricArray<std::uint64_t> words(world, ranks);
        const std::unique_ptr<Team> all = world.make_team({0, 1, 2, 3});
        world.barrier();
        const auto start = Clock::now();
        try {
          if (world.rank() == 0) {
            static_cast<void>(wait(Thread{}, all->host_context(), words.data(), Compare::equal, 1, 1));
            std::this_thread::sleep_for(1s);  // only the engine's thread serves this rank
          }
          for (std::uint64_t round = 2;; ++round) {
            put_value(world.host_context(), words.data() + world.rank(), round, 0);
            world.check();
          }
        } catch (const Error& error) {
          BEELINE_CHECK_CONTAINS(error.what(), "wait on rank 1");
        }
        BEELINE_CHECK(world.rank() == 0 || Clock::now() - start < 2800ms);
        world.barrier();
      },
      split_config(2'000'000'000, "sockets")));
}

/// Runs `body` on two ranks over sockets, one on each node; rank 0's connection has a fault.
void run_with_fault(const char* fault, std::int64_t deadline_ns, const std::function<void(World&)>& body) {
  const Config config = split_config(deadline_ns, "sockets");
  expect_all_passed(run_processes(
      2,
      [&](const Config& each) {
        Config own = each;
        if (own.rank == 0) own.transports += std::string(":") + fault;
        body(*World::create(own));
      },
      config));
}

/// Checks the errors with which a wait for `peer` ends.
void check_fault(World& world, std::initializer_list<std::string_view> expected, int peer) {
  const SymmetricArray<std::uint64_t> words(world, 1);
  try {
    for (std::uint64_t round = 1;; ++round) {
      put_value(world.host_context(), words.data(), round, static_cast<std::uint32_t>(peer));
      if (wait(Thread{}, world.host_context(), words.data(), Compare::greater_equal, round,
               static_cast<std::uint32_t>(peer)) != Status::ok)
        world.check();
    }
  } catch (const Error& error) {
    const std::string text = error.what();
    BEELINE_CHECK(std::any_of(expected.begin(), expected.end(),
                              [&](std::string_view each) { return text.find(each) != text.npos; }));
  }
  BEELINE_CHECK(world.failed());
}

TEST(Faults, OfAConnectionThatIsCutEndItsRanks) {
  SKIP_WITHOUT("sockets");
  run_with_fault("cut=100", 20'000'000'000,
                 [](World& world) { check_fault(world, {"lost its connection to rank"}, 1 - world.rank()); });
}

TEST(Faults, OfAMessageThatIsLostEndWaitsByTheirDeadline) {
  SKIP_WITHOUT("sockets");
  run_with_fault("drop=100", 2'000'000'000, [](World& world) {
    check_fault(world, {"wait on rank 0", "wait on rank 1"}, 1 - world.rank());
  });
}

/// Of three ranks on three nodes, the last has no UCX: others reach it by sockets, and each other by UCX.
TEST(SeveralTransports, AreChosenForEachPair) {
  SKIP_WITHOUT("ucx");
  SKIP_WITHOUT("sockets");
  Config all = split_config();
  all.split_nodes = 3;
  expect_all_passed(run_processes(
      3,
      [](const Config& config) {
        Config own = config;
        own.transports = own.rank == 2 ? "sockets" : "ucx,sockets:delay_us=20:reorder";
        const std::unique_ptr<World> world = World::create(own);
        for (int peer = 0; peer < 3; ++peer)
          if (peer != own.rank)
            BEELINE_CHECK_CONTAINS(path_to(*world, peer).reason,
                                   peer == 2 || own.rank == 2 ? ": sockets carries operations" : ": UCX 1.");
        SymmetricArray<std::uint64_t> words(*world, 3);
        const std::vector<std::uint64_t> mine(50'000, static_cast<std::uint64_t>(own.rank) + 1);
        SymmetricArray<std::uint64_t> table(*world, 3 * mine.size());
        for (std::uint64_t round = 1; round <= 20; ++round) {
          for (std::uint32_t peer = 0; peer < 3; ++peer)
            put_signal(Thread{}, world->host_context(), table.data() + mine.size() * static_cast<std::size_t>(own.rank),
                       mine.data(), mine.size(), words.data() + own.rank, round, peer);
          for (std::uint32_t peer = 0; peer < 3; ++peer) {
            BEELINE_CHECK(wait(Thread{}, world->host_context(), words.data() + peer, Compare::equal, round, peer) ==
                          Status::ok);
            BEELINE_CHECK_EQ(peer + 1, table.data()[mine.size() * peer + mine.size() - 1]);
          }
          world->barrier();
        }
      },
      all));
}

TEST(SeveralTransports, OfWhichAPairHasNoneAreRefused) {
  SKIP_WITHOUT("ucx");
  SKIP_WITHOUT("sockets");
  expect_all_passed(run_processes(
      2,
      [](const Config& config) {
        Config own = config;
        own.transports = own.rank == 0 ? "ucx" : "sockets";
        check_error(Status::unreachable, {"ranks 0 and 1 have no transport in common: ucx and sockets"},
                    [&] { static_cast<void>(World::create(own)); });
        own.transports = "pigeons";
        check_error(Status::invalid_argument, {"BEELINE_TRANSPORTS=\"pigeons\"", "ucx, sockets"},
                    [&] { static_cast<void>(World::create(own)); });
        own.transports = "sockets:wings=2";
        check_error(Status::invalid_argument, {"sockets's settings", "delay_us"},
                    [&] { static_cast<void>(World::create(own)); });
        own.transports = "sockets:delay_us=long";
        check_error(Status::invalid_argument, {"BEELINE_TRANSPORTS, sockets:delay_us=\"long\""},
                    [&] { static_cast<void>(World::create(own)); });
      },
      split_config()));
}

}  // namespace

}  // namespace beeline_test::broken_network_test
