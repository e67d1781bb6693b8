// SPDX-License-Identifier: Apache-2.0
// Ranks in different collective functions: each error names the other's function, no memory changes, and both continue.
// A wait's deadline names the function that a rank on another node is in.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"

namespace beeline_test::different_calls_test {

namespace {

using namespace beeline;

/// Arguments of the calls, and objects that the calls must leave unchanged.
struct Things {
  explicit Things(World& on)
      : world(on), memory(on.allocate(64)), segment(on.create_segment(MemoryKind::host, 100).id),
        registered(on.register_memory(mine.data(), mine.size()).id), team(on.make_team({0, 1})),
        team_memory(team->allocate(64)) {}

  World& world;
  alignas(16) std::array<std::byte, 64> mine{}, other{};
  void* memory;
  std::uint32_t segment, registered;
  std::unique_ptr<Team> team;
  void* team_memory;
};

struct Call {
  const char* name;
  void (*make)(Things&);
};

constexpr Call world_calls[] = {
    {"allgather",
     [](Things& things) {
       static_cast<void>(things.world.allgather({things.other.data(), 16}));
     }},
    {"allocate", [](Things& things) { static_cast<void>(things.world.allocate(1000)); }},
    {"free", [](Things& things) { things.world.free(things.memory); }},
    {"make_team",
     [](Things& things) {
       static_cast<void>(things.world.make_team({0, 1}));
     }},
    {"create_segment", [](Things& things) { static_cast<void>(things.world.create_segment(MemoryKind::host, 5000)); }},
    {"destroy_segment", [](Things& things) { things.world.destroy_segment(things.segment); }},
    {"register_memory",
     [](Things& things) { static_cast<void>(things.world.register_memory(things.other.data(), 64)); }},
    {"deregister_memory", [](Things& things) { things.world.deregister_memory(things.registered); }},
    {"make_distributed", [](Things& things) { const DistributedArray<int> array(things.world, 100); }},
    {"Collectives", [](Things& things) { const Collectives collectives(things.world); }},
    {"Messages", [](Things& things) { const Messages messages(things.world); }},
    {"leave", [](Things& things) { things.world.leave(); }},
};

constexpr Call team_calls[] = {
    {"allgather",
     [](Things& things) {
       static_cast<void>(things.team->allgather({things.other.data(), 24}));
     }},
    {"allocate", [](Things& things) { static_cast<void>(things.team->allocate(1000)); }},
    {"free", [](Things& things) { things.team->free(things.team_memory); }},
    {"Collectives", [](Things& things) { const Collectives collectives(*things.team); }},
    {"Messages", [](Things& things) { const Messages messages(*things.team); }},
};

/// Makes every pair of different calls, one on each rank; then both ranks make all calls.
void mix(World& world, std::span<const Call> calls) {
  Things things(world);
  for (const Call& first : calls)
    for (const Call& second : calls) {
      if (&first == &second) continue;
      const Call &mine = world.rank() == 0 ? first : second, &theirs = world.rank() == 0 ? second : first;
      check_error(Status::invalid_argument,
                  {join("rank ", world.rank(), " is in ", mine.name, " while rank ", 1 - world.rank(), " is in ",
                        theirs.name, ":"),
                   "all ranks make the same calls in the same order"},
                  [&] { mine.make(things); });
    }
  world.barrier();
  for (const Call& both : calls) both.make(things);
}

class DifferentCalls : public ::testing::TestWithParam<WorldKind> {
 protected:
  static void expect_named(std::span<const Call> calls) {
    Config config = test_config();
    config.device = "cpu";
    expect_all_passed(run_ranks(
        GetParam(), 2, [&](World& world) { mix(world, calls); }, config, 60));
  }
};

TEST_P(DifferentCalls, OfTheWorldAreNamed) { expect_named(world_calls); }
TEST_P(DifferentCalls, OfATeamAreNamed) { expect_named(team_calls); }

INSTANTIATE_TEST_SUITE_P(Worlds, DifferentCalls, ::testing::Values(WorldKind::threads, WorldKind::processes),
                         [](const auto& info) {
                           return std::string(info.param == WorldKind::threads ? "Threads" : "Processes");
                         });

/// The error of rank 0 reads the name that rank 1, on another node, publishes meanwhile: words, which do not race.
TEST(CallOnAnotherNode, IsNamedByADeadline) {
  SKIP_WITHOUT("sockets");
  std::atomic<bool> waits{false};
  const auto body = [&](World& world) {
    if (world.rank() == 0) {
      waits = true;
      check_error(Status::deadline, {"barrier on rank 1", "rank 1 is in allocate"}, [&] { world.barrier(); });
      return;
    }
    while (!waits) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::seconds(1));  // so that the other deadline passes first
    try {
      static_cast<void>(world.allocate(64));
      throw CheckFailure("no error");
    } catch (const Error& error) {  // rank 0 has aborted the world, and may have left it
      BEELINE_CHECK_CONTAINS(error.what(), "this rank was in allocate");
    }
  };
  expect_all_passed(run_ranks(WorldKind::threads, 2, body, split_config(2'000'000'000, "sockets"), 60));
}

}  // namespace

}  // namespace beeline_test::different_calls_test
