// SPDX-License-Identifier: Apache-2.0
// Memory that cannot be registered, and copies that are impossible: errors are clear, and the same on all ranks for
// collective calls.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"

namespace beeline_test::registered_memory_test {

namespace {

using namespace beeline;

constexpr int ranks = 3;

void run(WorldKind kind, const std::function<void(World&)>& body) {
  Config config = test_config();
  config.device = "cpu";
  expect_all_passed(run_ranks(kind, ranks, body, config));
}

struct alignas(64) Memory {
  std::byte bytes[4096] = {};
};

/// Only rank 1 makes a mistake; all ranks get the error, and then the same call succeeds.
void expect_refused(World& world, std::initializer_list<std::string_view> words, void* pointer, std::size_t bytes,
                    Memory& good) {
  check_error(Status::invalid_argument, words, [&] {
    static_cast<void>(world.rank() == 1 ? world.register_memory(pointer, bytes)
                                        : world.register_memory(good.bytes, sizeof good.bytes));
  });
  world.deregister_memory(world.register_memory(good.bytes, sizeof good.bytes).id);
}

class Registering : public ::testing::TestWithParam<WorldKind> {};

TEST_P(Registering, BadInputIsRefusedOnAllRanks) {
  run(GetParam(), [](World& world) {
    Memory good, other;
    expect_refused(world, {"rank 1", "4096 bytes at no address"}, nullptr, 4096, good);
    expect_refused(world, {"rank 1", "no bytes at", "nullptr and 0"}, other.bytes, 0, good);
    expect_refused(world, {"rank 1", "not aligned to 16 bytes"}, other.bytes + 8, 64, good);
    expect_refused(world, {"rank 1", "not all of it is memory"}, reinterpret_cast<void*>(4096), 4096, good);
    expect_refused(world, {"rank 1", "not all of it is memory"}, other.bytes, SIZE_MAX, good);
    void* hole = mmap(nullptr, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(static_cast<std::byte*>(hole) + (2 << 20), 2 << 20);
    expect_refused(world, {"rank 1", "not all of it is memory"}, hole, 4 << 20, good);
    munmap(hole, 2 << 20);
    const SymmetricArray<std::byte> own(world, 4096);
    expect_refused(world, {"rank 1", "the world's own memory"}, own.data(), 4096, good);
    check_error(Status::invalid_argument, {"no rank has any memory"},
                [&] { static_cast<void>(world.register_memory(nullptr, 0)); });
  });
}

TEST_P(Registering, TwiceIsRefused) {
  run(GetParam(), [](World& world) {
    Memory good, other;
    const RegisteredMemory& first = world.register_memory(other.bytes, sizeof other.bytes);
    expect_refused(world, {"rank 1", "registered already"}, other.bytes, sizeof other.bytes, good);
    expect_refused(world, {"rank 1", "registered already"}, other.bytes + 4080, 16, good);
    expect_refused(world, {"rank 1", "registered already"}, other.bytes + 16, 16, good);
    world.deregister_memory(first.id);
    world.deregister_memory(world.register_memory(other.bytes, sizeof other.bytes).id);
  });
}

TEST(RegisteringThreads, TheSameMemoryOnTwoRanksIsRefused) {
  static Memory shared, also_shared;
  run(WorldKind::threads, [](World& world) {
    check_error(Status::invalid_argument, {"ranks 0 and 1 register the same memory"},
                [&] { static_cast<void>(world.register_memory(shared.bytes, 64)); });
    const bool first = world.rank() == 0;
    const auto& held = world.register_memory(first ? also_shared.bytes : nullptr, first ? 64 : 0);
    check_error(Status::invalid_argument, {"rank 2 registers memory", "that rank 0 has registered"}, [&] {
      const bool last = world.rank() == 2;
      static_cast<void>(world.register_memory(last ? also_shared.bytes : nullptr, last ? 64 : 0));
    });
    world.deregister_memory(held.id);
  });
}

TEST_P(Registering, DeregisteringWhatIsNot) {
  run(GetParam(), [](World& world) {
    Memory memory, second;
    const std::uint32_t a = world.register_memory(memory.bytes, 64).id, b = world.register_memory(second.bytes, 64).id;
    check_error(Status::invalid_argument, {"not registered"}, [&] { world.deregister_memory(99); });
    check_error(Status::invalid_argument, {"deregisters memory"},
                [&] { world.deregister_memory(world.rank() == 0 ? a : b); });
    world.deregister_memory(a);
    check_error(Status::invalid_argument, {"not registered"}, [&] { world.deregister_memory(a); });
    std::byte value{};
    check_error(Status::invalid_argument, {"is not registered"}, [&] {
      world.copy(&value, RegisteredPlace{a, 0, 0}, 1);
    });
    world.deregister_memory(b);
  });
}

TEST_P(Registering, CopiesOutsideAPart) {
  run(GetParam(), [](World& world) {
    Memory memory;
    std::byte data[128] = {};
    const bool has = world.rank() != 2;
    const std::uint32_t id = world.register_memory(has ? memory.bytes : nullptr, has ? 100 : 0).id;
    const auto refuse = [&](std::initializer_list<std::string_view> words, RegisteredPlace place, std::size_t bytes) {
      check_error(Status::invalid_argument, words, [&] { world.copy(data, place, bytes); });
      check_error(Status::invalid_argument, words, [&] { world.copy(place, data, bytes); });
    };
    refuse({"101 bytes at offset 0", "rank 1's part has 100"}, {id, 1, 0}, 101);
    refuse({"1 bytes at offset 100"}, {id, 1, 100}, 1);
    refuse({"part has 100"}, {id, 0, 8}, SIZE_MAX);
    refuse({"part has 100"}, {id, 0, SIZE_MAX}, 2);
    refuse({"rank 2's part has 0"}, {id, 2, 0}, 1);
    refuse({"rank 3 of a world of 3"}, {id, 3, 0}, 1);
    refuse({"rank -1 of a world of 3"}, {id, -1, 0}, 1);
    world.copy(data, RegisteredPlace{id, 1, 100}, 0);
    world.deregister_memory(id);
  });
}

/// Rank 0 puts a word to the alias; the world's error then names it.
void expect_put_refused(int size, bool deregistered, int peer, std::string_view words) {
  SKIP_WITHOUT_UCX();
  expect_all_passed(run_ranks(
      WorldKind::processes, size,
      [&](World& world) {
        Memory mine;
        const RegisteredMemory memory = world.register_memory(mine.bytes, sizeof mine.bytes);
        if (deregistered) world.deregister_memory(memory.id);
        try {
          if (world.rank() == 0)
            put_value(world.host_context(), reinterpret_cast<std::uint64_t*>(memory.alias), std::uint64_t{7},
                      static_cast<std::uint32_t>(peer));
          world.barrier();
          throw CheckFailure("no error");
        } catch (const Error& error) {
          if (world.rank() == 0) BEELINE_CHECK_CONTAINS(error.what(), words);
        }
      },
      split_config()));
}

/// No memory is mapped at an alias, so that ranks of the same node are refused.
TEST(RegisteringAcrossNodes, AnAliasNamesNoMemoryOfTheOwnNode) {
  expect_put_refused(4, false, 1, "are not wholly in this rank's symmetric memory");
}

TEST(RegisteringAcrossNodes, WhatIsDeregisteredIsRefusedByItsOwner) {
  expect_put_refused(2, true, 1, "no memory of its peer is there (any more)");
}

/// The dead rank's part is gone: no rank may access a process that now has its number.
TEST(RegisteringProcesses, APartOfADeadRank) {
  Config config = test_config();
  config.device = "cpu";
  const auto outcomes = run_processes(
      ranks,
      [](const Config& own) {
        const std::unique_ptr<World> world = World::create(own);
        Memory memory;
        std::byte data[64] = {};
        const std::uint32_t id = world->register_memory(memory.bytes, 64).id;
        world->copy(data, RegisteredPlace{id, 1, 0}, 64);
        world->barrier();
        if (own.rank == 1) kill(getpid(), SIGKILL);
        try {
          for (;;) world->barrier();
        } catch (const Error&) {
        }
        check_error(Status::peer_died, {"rank 1"}, [&] { world->copy(data, RegisteredPlace{id, 1, 0}, 64); });
        check_error(Status::peer_died, {"rank 1"}, [&] { world->copy(RegisteredPlace{id, 1, 0}, data, 64); });
        world->copy(data, RegisteredPlace{id, own.rank == 0 ? 2 : 0, 0}, 64);
        static_cast<void>(world->survivors());  // neither ends while the other copies
      },
      config);
  for (int rank = 0; rank < ranks; ++rank) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(rank == 1 ? outcome.signal == SIGKILL : outcome.passed()) << "rank " << rank << ": " << outcome.failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Registering, ::testing::Values(WorldKind::threads, WorldKind::processes),
                         [](const auto& each) { return each.param == WorldKind::threads ? "threads" : "processes"; });

}  // namespace

}  // namespace beeline_test::registered_memory_test
