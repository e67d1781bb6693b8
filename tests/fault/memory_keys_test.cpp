// SPDX-License-Identifier: Apache-2.0
// Puts and gets by memory keys: order among overlapping operations, memory that is unmapped, ranks that die.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/host/paths.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/split_nodes.hpp"
#include "tests/support/stopped_process.hpp"

#if defined(__SANITIZE_ADDRESS__)
/// In place of AddressSanitizer's, which looks at the memory of `to` after the call. UCX 1.22 probes a peer by reading
/// over its own `to`, at an address that a forked rank has, too.
extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* to, unsigned long to_count, const iovec* from,
                                    unsigned long from_count, unsigned long flags) {
  return ::syscall(SYS_process_vm_readv, pid, to, to_count, from, from_count, flags);
}
#endif

namespace beeline_test::memory_keys_test {

namespace {

using namespace beeline;
using namespace std::chrono_literals;

constexpr std::size_t long_bytes = 100'000;

/// Keys are used on any connection: those of this machine have no remote memory access of their own.
Config keyed_config() {
  Config config = split_config();
  config.memory_keys = MemoryKeys::always;
  return config;
}

void put_and_wait(World& world, std::byte* to, const std::vector<std::byte>& from, int rank) {
  put(Thread{}, world.host_context(), to, from.data(), from.size(), static_cast<std::uint32_t>(rank));
  BEELINE_CHECK(quiet(Thread{}, world.host_context()) == Status::ok);
}

/// Puts until a key has arrived.
void get_key(World& world, std::byte* to, const std::vector<std::byte>& from, int rank) {
  const std::uint64_t hits = network_statistics(world).key_hits;
  for (int puts = 0; puts < 1000 && network_statistics(world).key_hits == hits; ++puts)
    put_and_wait(world, to, from, rank);
  BEELINE_CHECK(network_statistics(world).key_hits > hits);
}

class MemoryKeysIn : public ::testing::TestWithParam<WorldKind> {
 public:
  void SetUp() override {
    if (const std::string why = missing_transport("ucx"); !why.empty()) GTEST_SKIP() << why;
    if (under_thread_sanitizer && GetParam() == WorldKind::processes)
      GTEST_SKIP() << "ThreadSanitizer sees one process";
  }
  static void run(int ranks, const std::function<void(World&)>& body) {
    expect_all_passed(run_ranks(GetParam(), ranks, body, keyed_config()));
  }
};

TEST_P(MemoryKeysIn, CarryLongPuts) {
  run(2, [](World& world) {
    const SymmetricArray<std::byte> data(world, long_bytes);
    const SymmetricArray<std::uint64_t> signals(world, 1);
    const std::uint32_t peer = world.rank() == 0 ? 1 : 0;
    std::vector<std::byte> mine(long_bytes);
    for (std::uint64_t round = 1; round <= 50; ++round) {
      std::fill(mine.begin(), mine.end(), std::byte(round));
      if (world.rank() == 0)
        put_signal(Thread{}, world.host_context(), data.data(), mine.data(), long_bytes, signals.data(), round, peer);
      BEELINE_CHECK(world.rank() == 0 ||
                    wait(Thread{}, world.host_context(), signals.data(), Compare::equal, round, peer) == Status::ok);
      if (world.rank() == 1)
        BEELINE_CHECK(std::all_of(data.data(), data.data() + long_bytes,
                                  [&](std::byte byte) { return byte == std::byte(round); }));
      world.barrier();
    }
    const NetworkStatistics puts = network_statistics(world);
    BEELINE_CHECK(world.rank() == 1 || puts.key_hits > 25);
    BEELINE_CHECK(world.rank() == 1 || puts.key_misses > 0);  // the first put of all requests the key
    BEELINE_CHECK(world.rank() == 0 || (puts.registered_pieces > 0 && puts.registered_bytes > long_bytes));
  });
}

/// A get after a signal sees the data that the signal announces, and also this rank's own puts.
TEST_P(MemoryKeysIn, CarryGets) {
  run(2, [](World& world) {
    constexpr std::size_t most = std::size_t{1} << 20;
    const SymmetricArray<std::byte> data(world, most);
    const SymmetricArray<std::uint64_t> signals(world, 1);
    const Context& ctx = world.host_context();
    const std::uint32_t peer = world.rank() == 0 ? 1 : 0;
    std::vector<std::byte> here(most), mine(most);
    if (world.rank() == 0) get_key(world, data.data(), std::vector<std::byte>(long_bytes), 1);
    world.barrier();
    const std::uint64_t hits = network_statistics(world).key_hits;
    for (std::uint64_t round = 1; round <= 40; ++round) {
      const std::size_t bytes = round % 4 == 0 ? most : round % 2 == 0 ? long_bytes : 1 + round;
      if (world.rank() == 1) {
        std::fill_n(data.data(), bytes, std::byte(round));
        BEELINE_CHECK(signal(Thread{}, ctx, signals.data(), round, peer) == Status::ok);
      } else {
        BEELINE_CHECK(wait(Thread{}, ctx, signals.data(), Compare::equal, round, peer) == Status::ok);
        BEELINE_CHECK(get(Thread{}, ctx, here.data(), data.data(), bytes, peer) == Status::ok);
        BEELINE_CHECK(std::all_of(here.begin(), here.begin() + static_cast<std::ptrdiff_t>(bytes),
                                  [&](std::byte byte) { return byte == std::byte(round); }));
        std::fill(mine.begin(), mine.end(), std::byte(round + 100));
        put(Thread{}, ctx, data.data(), mine.data(), bytes, peer);
        BEELINE_CHECK(get(Thread{}, ctx, here.data(), data.data(), bytes, peer) == Status::ok);
        BEELINE_CHECK(std::equal(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(bytes), here.begin()));
        BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok);
      }
      world.barrier();
    }
    BEELINE_CHECK(world.rank() == 1 || network_statistics(world).key_hits >= hits + 40);
  });
}

/// Whichever protocol carries each operation, the memory ends as if each had completed before the next.
TEST_P(MemoryKeysIn, KeepTheOrderOfOperations) {
  run(2, [](World& world) {
    constexpr std::size_t words = 40'000;
    const SymmetricArray<std::uint64_t> table(world, words);
    const Context& ctx = world.host_context();
    std::fill_n(table.data(), words, 0);
    world.barrier();
    if (world.rank() == 0) {
      std::mt19937_64 random(5);
      std::vector<std::uint64_t> expected(words), source(20 * words);
      get_key(world, reinterpret_cast<std::byte*>(table.data()), std::vector<std::byte>(long_bytes), 1);
      const std::uint64_t hits = network_statistics(world).key_hits;
      std::size_t used = 0;
      for (int operation = 0; operation < 600; ++operation) {
        const std::uint64_t value = random();
        const std::size_t most = operation % 3 == 0 ? words / 8 : words / 100;
        const std::size_t first = random() % words, count = 1 + random() % std::min(words - first, most);
        if (operation % 50 == 0 || used + count > source.size())
          BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok), used = 0;
        std::fill_n(source.begin() + static_cast<std::ptrdiff_t>(used), count, value);
        switch (random() % 4) {
          case 0:
            put_value(ctx, table.data() + first, value, 1);
            expected[first] = value;
            break;
          case 1:
            atomic_add(ctx, table.data() + first, value, 1);
            expected[first] += value;
            break;
          default:
            put(Thread{}, ctx, table.data() + first, source.data() + used, count, 1);
            std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(first), count, value);
            used += count;
        }
      }
      std::vector<std::uint64_t> found(words);
      BEELINE_CHECK(get(Thread{}, ctx, found.data(), table.data(), words, 1) == Status::ok);
      BEELINE_CHECK(found == expected);
      BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok);
      BEELINE_CHECK(network_statistics(world).key_hits > hits);
      BEELINE_CHECK(network_statistics(world).key_overlaps > 0);
    }
    world.barrier();
  });
}

/// Each segment has the address of the previous one.
TEST_P(MemoryKeysIn, AreGivenBackBeforeMemoryIsUnmapped) {
  run(2, [](World& world) {
    constexpr std::uint64_t rounds = 20;
    const std::vector<std::byte> mine(long_bytes, std::byte{7});
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const Segment segment = world.create_segment(MemoryKind::host, long_bytes);
      if (world.rank() == 0) get_key(world, segment.parts[0].address, mine, 1);
      // These are still in flight.
      for (int puts = 0; world.rank() == 0 && puts < 4; ++puts)
        put(Thread{}, world.host_context(), segment.parts[0].address, mine.data(), long_bytes, 1);
      world.destroy_segment(segment.id);
      const NetworkStatistics puts = network_statistics(world);
      BEELINE_CHECK_EQ(world.rank() == 0 ? round : 0, puts.keys_ended);
      BEELINE_CHECK_EQ(world.rank() == 0 ? 0 : round, puts.pieces_ended);
      BEELINE_CHECK_EQ(0u, puts.registered_pieces);
    }
    BEELINE_CHECK(quiet(Thread{}, world.host_context()) == Status::ok);
    world.barrier();
  });
}

/// The owner frees its memory at once after the deregistration.
TEST_P(MemoryKeysIn, OfRegisteredMemoryAreGivenBackBeforeItIsFreed) {
  run(2, [](World& world) {
    const std::vector<std::byte> mine(long_bytes, std::byte{7});
    std::vector<std::byte> here(long_bytes);
    for (std::uint64_t round = 1; round <= 5; ++round) {
      std::vector<std::byte> memory(long_bytes);
      const RegisteredMemory registered = world.register_memory(memory.data(), memory.size());
      if (world.rank() == 0) {
        get_key(world, registered.alias, mine, 1);
        for (int puts = 0; puts < 4; ++puts)
          put(Thread{}, world.host_context(), registered.alias, mine.data(), long_bytes, 1);
        BEELINE_CHECK(get(Thread{}, world.host_context(), here.data(), registered.alias, long_bytes, 1) == Status::ok);
        BEELINE_CHECK(here == mine);
      }
      world.deregister_memory(registered.id);
      const NetworkStatistics keys = network_statistics(world);
      BEELINE_CHECK_EQ(world.rank() == 0 ? round : 0, keys.keys_ended);
      BEELINE_CHECK_EQ(world.rank() == 0 ? 0 : round, keys.pieces_ended);
      BEELINE_CHECK(world.rank() == 0 || memory == mine);
    }
    BEELINE_CHECK(quiet(Thread{}, world.host_context()) == Status::ok);
    world.barrier();
  });
}

TEST_P(MemoryKeysIn, OfMemoryThatIsGoneAreNotUsed) {
  run(2, [](World& world) {
    const std::vector<std::byte> mine(long_bytes, std::byte{7});
    const Segment segment = world.create_segment(MemoryKind::host, long_bytes);
    if (world.rank() == 0) get_key(world, segment.parts[0].address, mine, 1);
    world.destroy_segment(segment.id);
    try {
      if (world.rank() == 0) put(Thread{}, world.host_context(), segment.parts[0].address, mine.data(), long_bytes, 1);
      world.barrier();
      throw CheckFailure("no error");
    } catch (const Error& error) {
      BEELINE_CHECK_CONTAINS(error.what(), "rank 1's engine refused: put of 1 x 100000 bytes");
    }
  });
}

TEST_P(MemoryKeysIn, OfMemoryThatIsGoneAreNotUsedByGets) {
  run(2, [](World& world) {
    std::vector<std::byte> mine(long_bytes, std::byte{7});
    const Segment segment = world.create_segment(MemoryKind::host, long_bytes);
    if (world.rank() == 0) get_key(world, segment.parts[0].address, mine, 1);
    world.destroy_segment(segment.id);
    try {
      if (world.rank() == 0)
        BEELINE_CHECK(get(Thread{}, world.host_context(), mine.data(), segment.parts[0].address, mine.size(), 1) ==
                      Status::aborted);
      world.barrier();
      throw CheckFailure("no error");
    } catch (const Error& error) {
      BEELINE_CHECK_CONTAINS(error.what(), "rank 1's engine refused: get of 1 x 100000 bytes");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, MemoryKeysIn, ::testing::Values(WorldKind::processes, WorldKind::threads),
                         [](const ::testing::TestParamInfo<WorldKind>& kind) {
                           return kind.param == WorldKind::threads ? "threads" : "processes";
                         });

/// A rank that has a key and dies does not keep others from unmapping.
TEST(MemoryKeys, OfARankThatDiesAreGone) {
  SKIP_WITHOUT_UCX();
  if (under_thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer sees one process";
  const auto outcomes = run_processes(
      4,
      [](const Config& config) {
        const std::unique_ptr<World> world = World::create(config);
        constexpr std::size_t bytes = std::size_t{8} << 20;
        const std::vector<std::byte> mine(bytes, std::byte{7});
        const Segment segment = world->create_segment(MemoryKind::host, bytes);
        std::byte* const own = segment.parts[static_cast<std::size_t>(config.rank)].address;
        std::vector<std::byte> kept(bytes), next_kept(bytes);
        const std::uint32_t registered = world->register_memory(kept.data(), bytes).id;
        std::optional<DistributedArray<std::byte>> array(std::in_place, *world, bytes);
        try {
          if (config.rank == 3) get_key(*world, own, mine, 0);
          if (config.rank < 2) get_key(*world, own, mine, 3);
          std::vector<std::byte> here(bytes);
          world->barrier();
          if (config.rank == 3) {
            std::this_thread::sleep_for(50ms);
            ::kill(::getpid(), SIGKILL);
          }
          for (;;) {
            if (config.rank == 0) put(Thread{}, world->host_context(), own, mine.data(), bytes, 3);
            if (config.rank == 1) static_cast<void>(get(Thread{}, world->host_context(), here.data(), own, bytes, 3));
            world->check();
          }
        } catch (const Error& error) {
          BEELINE_CHECK_CONTAINS(error.what(), "rank 3 ended");
        }
        Team& team = world->survivors();
        BEELINE_CHECK_EQ(3, team.size());
        check_error(Status::peer_died, {"rank 3's registered memory is gone"}, [&] {
          world->copy(RegisteredPlace{registered, 3, 0}, mine.data(), bytes);
        });
        world->deregister_memory(registered);
        array.reset();
        array.emplace(*world, bytes);
        if (config.rank == 2) world->copy(array->data(), mine.data(), bytes);
        const RegisteredMemory& memory = world->register_memory(next_kept.data(), bytes);
        if (config.rank == 2) world->copy(RegisteredPlace{memory.id, 0, 0}, mine.data(), bytes);
        team.barrier();
        std::vector<std::byte> all(bytes);
        world->copy(all.data(), array->data(), bytes);
        BEELINE_CHECK(all == mine);
        BEELINE_CHECK(config.rank != 0 || next_kept == mine);
        world->deregister_memory(memory.id);
        array.reset();
        world->destroy_segment(segment.id);
        const Segment next = world->create_segment(MemoryKind::host, bytes);
        if (config.rank == 2) get_key(*world, next.parts[2].address, mine, 0);
        team.barrier();
        BEELINE_CHECK(config.rank != 0 || next.parts[0].address[bytes - 1] == std::byte{7});
        world->destroy_segment(next.id);
      },
      keyed_config());
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(outcomes[rank].passed()) << outcomes[rank].failure;
  EXPECT_EQ(SIGKILL, outcomes[3].signal);
}

/// Why connections between processes of this machine lack remote memory access; empty if they have it.
std::string no_remote_access() {
  const char* const transports = std::getenv("UCX_TLS");
  if (transports == nullptr || std::strstr(transports, "cma") == nullptr)
    return "needs UCX 1.14 or later with UCX_TLS=posix,cma,tcp (tests/python/test_newer_ucx.py)";
  return {};
}

/// The target process is stopped, but still gets its data.
TEST(RemoteAccess, NeedsNoCpuOfTheTarget) {
  SKIP_WITHOUT_UCX();
  if (const std::string why = no_remote_access(); !why.empty()) GTEST_SKIP() << why;
  expect_all_passed(run_ranks(
      WorldKind::processes, 2,
      [](World& world) {
        constexpr std::size_t bytes = std::size_t{8} << 20;
        const SymmetricArray<std::byte> data(world, bytes);
        const SymmetricArray<std::uint64_t> words(world, 2);
        const Context& ctx = world.host_context();
        BEELINE_CHECK_CONTAINS(path_to(world, 1 - world.rank()).reason, "long puts by memory keys (");
        std::vector<std::byte> mine(bytes, std::byte{1});
        if (world.rank() == 0) get_key(world, data.data(), mine, 1);
        world.barrier();
        if (world.rank() == 1) {
          put_value(ctx, words.data() + 1, reinterpret_cast<std::uint64_t>(data.data()), 0);
          put_value(ctx, words.data(), static_cast<std::uint64_t>(::getpid()), 0);
          BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok);
          ::raise(SIGSTOP);
        } else {
          BEELINE_CHECK(wait(Thread{}, ctx, words.data(), Compare::not_equal, 0, 1) == Status::ok);
          await_stop(static_cast<pid_t>(words.data()[0]));
          std::fill(mine.begin(), mine.end(), std::byte{2});
          put(Thread{}, ctx, data.data(), mine.data(), bytes, 1);
          std::vector<std::byte> there(bytes);
          const iovec to{there.data(), bytes}, from{reinterpret_cast<void*>(words.data()[1]), bytes};
          const auto pid = static_cast<pid_t>(words.data()[0]);
          const auto end = std::chrono::steady_clock::now() + 5s;
          while (there != mine && std::chrono::steady_clock::now() < end)
            BEELINE_CHECK_EQ(static_cast<ssize_t>(bytes), ::process_vm_readv(pid, &to, 1, &from, 1, 0));
          const bool has_come = there == mine;
          ::kill(pid, SIGCONT);
          BEELINE_CHECK(has_come);
        }
        world.barrier();
      },
      keyed_config()));
}

}  // namespace

}  // namespace beeline_test::memory_keys_test
