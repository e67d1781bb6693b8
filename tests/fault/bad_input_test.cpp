// SPDX-License-Identifier: Apache-2.0
// Bad input is refused with an error that names it, the same on every rank, and the world continues.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::bad_input_test {

namespace {

using namespace beeline;

constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();

/// Runs `body` on two host ranks that are threads.
void run_pair(const std::function<void(World&)>& body, Config config = test_config()) {
  config.device = "cpu";
  expect_all_passed(run_ranks(
      WorldKind::threads, 2,
      [&](World& world) {
        body(world);
        world.barrier();  // the world still works
        world.free(world.allocate(64));
      },
      config, 60));
}

TEST(BadAllocation, ZeroBytesIsAnAllocation) {
  run_pair([](World& world) {
    void* first = world.allocate(0);
    void* second = world.allocate(0);
    BEELINE_CHECK(first != nullptr && second != nullptr && first != second);
    world.free(first);
    world.free(second);
    world.free(nullptr);
  });
}

TEST(BadAllocation, TooMuchIsRefused) {
  run_pair([](World& world) {
    for (const std::size_t bytes : {huge, huge - 255, huge / 2, world.config().heap_bytes + 1})
      check_error(Status::no_resource, {std::to_string(bytes), "BEELINE_HEAP_BYTES"},
                  [&] { static_cast<void>(world.allocate(bytes)); });
    check_error(Status::no_resource, {"bytes"}, [&] { static_cast<void>(world.allocate(huge / 4, Heap::pinned)); });
    check_error(Status::no_resource, {"bytes"}, [&] { Signals(world, huge / 8 + 2); });
    check_error(Status::no_resource, {"bytes"}, [&] { SymmetricArray<double>(world, huge / 8 + 2); });
  });
}

TEST(BadAllocation, AFullHeapEmptiesAgain) {
  Config config = test_config();
  config.heap_bytes = std::size_t{1} << 20;
  run_pair(
      [](World& world) {
        for (int round = 0; round < 2; ++round) {
          std::vector<void*> pieces;
          for (int i = 0; i < 4; ++i) pieces.push_back(world.allocate(std::size_t{1} << 18));
          check_error(Status::no_resource, {"no room for 1 bytes", "0 bytes are free"},
                      [&] { static_cast<void>(world.allocate(1)); });
          for (void* piece : pieces) world.free(piece);
        }
        world.free(world.allocate(std::size_t{1} << 20));
      },
      config);
}

TEST(BadAllocation, OwnersGiveTheirMemoryBack) {
  Config config = test_config();
  config.heap_bytes = std::size_t{1} << 20;
  run_pair(
      [](World& world) {
        const std::unique_ptr<Team> alone = world.make_team({world.rank()});
        for (Team* team : {static_cast<Team*>(&world), alone.get()})
          for (int round = 0; round < 8; ++round) {
            const PacketRings rings(*team, std::size_t{1} << 12);
            const Signals signals(*team, std::size_t{1} << 15);
          }
        world.free(world.allocate(std::size_t{1} << 20));
      },
      config);
}

TEST(BadAllocation, DifferingSizesNameBothRanks) {
  for (const std::size_t other : {std::size_t{200}, huge / 2})
    run_pair([&](World& world) {
      check_error(Status::invalid_argument, {"rank 0 asks for 100 bytes", std::to_string(other) + " bytes"}, [&] {
        if (world.rank() == 0)
          static_cast<void>(world.allocate(100));
        else
          static_cast<void>(world.allocate(other));
      });
    });
}

TEST(BadAllocation, DifferingHeapsAreRefused) {
  run_pair([](World& world) {
    check_error(Status::invalid_argument, {"rank 0", "rank 1", "pinned"},
                [&] { static_cast<void>(world.allocate(100, world.rank() == 0 ? Heap::symmetric : Heap::pinned)); });
  });
}

TEST(BadFree, ForeignAndFreedPointersAreRefused) {
  run_pair([](World& world) {
    int local = 0;
    auto* memory = static_cast<std::byte*>(world.allocate(1000));
    const Segment& segment = world.create_segment(MemoryKind::host, 4096);
    std::byte* part = segment.parts[static_cast<std::size_t>(world.rank())].address;
    for (void* pointer : {static_cast<void*>(&local), static_cast<void*>(world.at(memory, 1 - world.rank())),
                          static_cast<void*>(memory + 256), static_cast<void*>(part)})
      check_error(Status::invalid_argument, {"allocated"}, [&] { world.free(pointer); });
    world.free(memory);
    check_error(Status::invalid_argument, {"allocated"}, [&] { world.free(memory); });
    world.destroy_segment(segment.id);
  });
}

/// Only one rank makes the mistake: it gets the error at once, without waiting for the others.
TEST(BadFree, OneRanksMistakeHarmsNobody) {
  run_pair([](World& world) {
    void* memory = world.allocate(1000);
    world.free(memory);
    if (world.rank() == 0) check_error(Status::invalid_argument, {"allocated"}, [&] { world.free(memory); });
  });
}

TEST(BadPeer, IsRefused) {
  run_pair([](World& world) {
    int* memory = static_cast<int*>(world.allocate(64));
    StagedChannel channel(world, 1000, 2);
    int local = 0;
    for (const int peer : {-1, 2, 64, -2}) {
      check_error(Status::invalid_argument, {"peer " + std::to_string(peer), "team of 2"},
                  [&] { static_cast<void>(world.at(memory, peer)); });
      check_error(Status::invalid_argument, {"rank " + std::to_string(peer)},
                  [&] { static_cast<void>(world.device(peer)); });
      check_error(Status::invalid_argument, {"peer " + std::to_string(peer)}, [&] { channel.send(&local, 4, peer); });
      check_error(Status::invalid_argument, {"peer " + std::to_string(peer)},
                  [&] { channel.receive(&local, 4, peer); });
    }
    check_error(Status::invalid_argument,
                {join("at: local ", static_cast<const void*>(&local), " is not in this rank's symmetric memory"),
                 "Team::allocate"},
                [&] { static_cast<void>(world.at(&local, 0)); });
    world.barrier();
    world.free(memory);
  });
}

TEST(BadAddress, OutsideEverySegmentIsRefused) {
  run_pair([](World& world) {
    auto* memory = static_cast<std::byte*>(world.allocate(64));
    std::byte* slot = world.context().range + (static_cast<std::size_t>(world.rank()) << world.config().slot_shift);
    std::byte* behind = slot + (std::size_t{1} << world.config().slot_shift) * world.size();
    const Segment& segment = world.create_segment(MemoryKind::host, 4096);
    std::byte* part = segment.parts[static_cast<std::size_t>(world.rank())].address;
    // A hole in this rank's slot, the bytes before the heap's first one, a segment, a peer's memory, and memory outside
    // the world.
    for (std::byte* address : {slot + 4096, behind, part, world.at(memory, 1 - world.rank()),
                               static_cast<std::byte*>(nullptr), reinterpret_cast<std::byte*>(huge)})
      check_error(Status::invalid_argument, {"symmetric memory"}, [&] { static_cast<void>(world.at(address, 0)); });
    BEELINE_CHECK_EQ(-1, world.owner_of(nullptr));
    BEELINE_CHECK_EQ(-1, world.owner_of(&memory));
    BEELINE_CHECK_EQ(-1, world.owner_of(reinterpret_cast<void*>(huge)));
    BEELINE_CHECK_EQ(world.rank(), world.owner_of(part));
    world.barrier();
    world.destroy_segment(segment.id);
    world.free(memory);
  });
}

/// The error names the argument and the call, the argument's address, and the size that would fit.
TEST(BadTransfer, TooLongOrNotSymmetricIsNamed) {
  run_pair([](World& world) {
    const SymmetricArray<std::byte> data(world, 1000);
    const Signals signals(world, 1);
    const int peer = 1 - world.rank();
    const Context& ctx = world.host_context();
    const std::uint64_t room = ctx.heap_end - ctx.offset_in_slot(data.data());
    alignas(8) std::byte mine[16];
    const auto too_long = [&](const char* call, const char* argument, const void* address, std::size_t bytes, int owner,
                              const auto& make) {
      check_error(Status::invalid_argument,
                  {join(call, ": ", argument, " ", address, ": ", bytes, " bytes, of which ", room,
                        " fit before the end of rank ", owner, "'s symmetric heap")},
                  make);
    };
    for (const std::size_t bytes : {room + 1, std::size_t{1} << 40, huge}) {
      too_long("put_on_stream", "destination", data.data(), bytes, world.rank(),
               [&] { put_on_stream(world, data.data(), mine, bytes, peer); });
      too_long("put_signal_on_stream", "destination", data.data(), bytes, world.rank(),
               [&] { put_signal_on_stream(world, data.data(), mine, bytes, peer, {.signal = signals.data()}); });
      too_long("copy", "destination", data.at(peer), bytes, peer, [&] { world.copy(data.at(peer), mine, bytes); });
      too_long("copy", "source", data.at(peer), bytes, peer,
               [&] { world.copy(mine, data.at(peer), bytes, world.stream()); });
    }
    const auto not_symmetric = [&](const char* call, const char* argument, const auto& make) {
      check_error(Status::invalid_argument,
                  {join(call, ": ", argument, " ", static_cast<const void*>(mine), " is not in this rank's symmetric"),
                   "pass an address of memory that Team::allocate"},
                  make);
    };
    auto* const word = reinterpret_cast<std::uint64_t*>(mine);
    not_symmetric("put_on_stream", "destination", [&] { put_on_stream(world, mine, data.data(), 16, peer); });
    not_symmetric("signal_on_stream", "signal", [&] { signal_on_stream(world, peer, {.signal = word}); });
    not_symmetric("put_signal_on_stream", "signal",
                  [&] { put_signal_on_stream(world, data.data(), mine, 16, peer, {.signal = word}); });
    not_symmetric("put_signal_on_stream", "destination",
                  [&] { put_signal_on_stream(world, mine, mine, 16, peer, {.signal = signals.data()}); });
    world.barrier();
  });
}

TEST(BadTransfer, OtherAllocationsAndNullAddressesAreNamed) {
  run_pair([](World& world) {
    const SymmetricArray<int> first(world, 64), second(world, 64);  // neighbours
    const Signals signals(world, 1);
    void* const freed = world.allocate(256);
    world.free(freed);
    const auto peer = static_cast<std::uint32_t>(1 - world.rank());
    int mine[128] = {};
    const int* const nothing = nullptr;
    const Thread thread;
    const auto refused = [&](std::initializer_list<std::string_view> words, const auto& call) {
      const std::unique_ptr<Team> team = world.make_team({0, 1});
      if (world.rank() == 0) {
        BEELINE_CHECK(call(team->host_context()) == Status::invalid_argument);
        check_error(Status::invalid_argument, words, [&] { team->barrier(); });
      }
      world.barrier();
    };
    refused({"rank 0: put on rank 1", "destination: 260 bytes", "not in one allocation"},
            [&](const Context& ctx) { return put(thread, ctx, first.data(), mine, 65, peer); });
    refused({"rank 0: put on rank 1", "destination: 256 bytes", "not in one allocation"}, [&](const Context& ctx) {
      return put_signal(thread, ctx, static_cast<int*>(freed), mine, 64, signals.data(), 1, peer);
    });
    refused({"rank 0: get on rank 1", "source: 8 bytes", "not in one allocation"},
            [&](const Context& ctx) { return get(thread, ctx, mine, second.data() + 63, 2, peer); });
    refused({"rank 0: put on rank 1", "source: 16 bytes at a null address"},
            [&](const Context& ctx) { return put(thread, ctx, first.data(), nothing, 4, peer); });
    refused({"rank 0: put on rank 1", "source: 16 bytes at a null address"}, [&](const Context& ctx) {
      return put_signal(thread, ctx, first.data(), nothing, 4, signals.data(), 1, peer);
    });
    refused({"rank 0: get on rank 1", "destination: 16 bytes at a null address"},
            [&](const Context& ctx) { return get(thread, ctx, static_cast<int*>(nullptr), first.data(), 4, peer); });
    detail::HostChecks of_gpus;  // as if rank 1 had a GPU
    of_gpus.mapped.set();
    of_gpus.on_gpus.set(1);
    const auto beside_gpu = [&](Context ctx) { return ctx.checks = &of_gpus, ctx; };
    int* const on_gpu = world.at(second.data(), 1);
    refused({"rank 0: put refused: source: 16 bytes at 0x", "are GPU memory", "World::copy"},
            [&](const Context& ctx) { return put(thread, beside_gpu(ctx), first.data(), on_gpu, 4, 0); });
    refused({"rank 0: get refused: destination: 16 bytes at 0x", "are GPU memory"},
            [&](const Context& ctx) { return get(thread, beside_gpu(ctx), on_gpu, first.data(), 4, 0); });
    check_error(Status::invalid_argument, {"put_on_stream: destination: 260 bytes", "not in one allocation"},
                [&] { put_on_stream(world, first.data(), mine, 260, static_cast<int>(peer)); });
    check_error(Status::invalid_argument, {"copy: destination: 256 bytes", "not in one allocation"},
                [&] { world.copy(freed, mine, 256); });
    put(thread, world.host_context(), first.data(), mine, 64, peer);
    world.barrier();
  });
}

TEST(BadTransfer, OverlapAndMisalignmentAreRefused) {
  run_pair([](World& world) {
    auto* memory = static_cast<std::byte*>(world.allocate(1000));
    const std::unique_ptr<Stream> stream = world.make_stream();
    for (const std::ptrdiff_t distance : {1, 99, -1, -99}) {
      std::byte* to = memory + 500 + distance;
      check_error(Status::invalid_argument, {"100 bytes", "overlap"}, [&] { world.copy(to, memory + 500, 100); });
      check_error(Status::invalid_argument, {"100 bytes", "overlap"},
                  [&] { world.copy(to, memory + 500, 100, *stream); });
    }
    check_error(Status::invalid_argument, {"100 bytes", "null address"}, [&] { world.copy(nullptr, memory, 100); });
    check_error(Status::invalid_argument, {"100 bytes", "null address"},
                [&] { world.copy(memory, nullptr, 100, *stream); });
    world.copy(memory + 600, memory + 500, 100);
    world.copy(memory + 400, memory + 500, 100, *stream);
    for (const std::size_t skew : {1, 2, 4, 7}) {
      auto* signal = reinterpret_cast<std::uint64_t*>(memory + skew);
      check_error(Status::invalid_argument, {"not aligned"}, [&] { stream->write_signal(signal, 1); });
      check_error(Status::invalid_argument, {"not aligned"}, [&] { stream->wait_signal(signal, 1); });
      check_error(Status::invalid_argument, {"not aligned"}, [&] { stream->write_signals({signal, 1}, {signal, 2}); });
    }
    world.synchronize(*stream);
    world.free(memory);
  });
}

/// A rank copies to its neighbour, which in a world of one is itself: as in MPI_Sendrecv, or NVSHMEM's put.
TEST(CopyOntoItself, LeavesItAsItIs) {
  run_pair([](World& world) {
    auto* memory = static_cast<std::byte*>(world.allocate(1000));
    const std::vector<std::byte> data = pattern(1, 1000);
    world.copy(memory, data.data(), data.size());
    world.copy(memory, memory, data.size());
    world.copy(memory, memory, data.size(), world.stream());
    world.stream().copy(memory, memory, data.size());
    world.synchronize();
    std::vector<std::byte> after(1000);
    world.copy(after.data(), memory, after.size());
    BEELINE_CHECK(after == data);
    world.free(memory);
  });
}

struct NothingMoves {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* memory) const {
    const std::uint32_t peer = (ctx.rank + 1) % ctx.size;
    put(grid.block(), ctx, memory, static_cast<const std::uint64_t*>(nullptr), 0, peer);
    static_cast<void>(get(grid.block(), ctx, static_cast<std::uint64_t*>(nullptr), memory, 0, peer));
    put_signal(grid.block(), ctx, memory, static_cast<const std::uint64_t*>(nullptr), 0, memory + 1, 9, peer);
    static_cast<void>(wait(grid.block(), ctx, memory + 1, Compare::equal, 9));
  }
};

TEST(ZeroLength, MovesNothingAndStillSignals) {
  run_pair([](World& world) {
    const SymmetricArray<std::uint64_t> memory(world, 2);
    world.copy(nullptr, nullptr, 0);
    world.copy(nullptr, nullptr, 0, world.stream());
    LaunchOptions options;
    options.waits = true;
    launch(world, options, NothingMoves{}, memory.data());
    world.synchronize();
    BEELINE_CHECK_EQ(std::uint64_t{0}, memory.data()[0]);
    StagedChannel channel(world, 1000, 2);
    channel.send_receive(nullptr, 1 - world.rank(), nullptr, 1 - world.rank(), 0);
    const PacketRings packets(world, 8);
  });
}

TEST(BadChannel, DepthAndSlotsAreChecked) {
  run_pair([](World& world) {
    for (const std::uint32_t depth : {0u, 1u, 3u, 24u, 0xffffffffu})
      check_error(Status::invalid_argument, {"depth " + std::to_string(depth), "power of two"},
                  [&] { PacketRings(world, 64, depth); });
    for (const std::size_t bytes : {std::size_t{0}, (std::size_t{1} << 30) + 1, huge})
      check_error(Status::invalid_argument, {"slots of " + std::to_string(bytes)}, [&] { PacketRings(world, bytes); });
    for (const std::uint32_t depth : {1u << 8, 1u << 16, 1u << 31})
      check_error(Status::no_resource, {"no room"}, [&] { PacketRings(world, std::size_t{1} << 30, depth); });
    check_error(Status::invalid_argument, {"at least one slot"}, [&] { StagedChannel(world, 1000, 0); });
    check_error(Status::no_resource, {"no room"}, [&] { StagedChannel(world, huge / 4, 7); });
  });
}

TEST(BadSegment, IsRefused) {
  run_pair([](World& world) {
    check_error(Status::invalid_argument, {"segment 99"}, [&] { world.destroy_segment(99); });
    for (const std::size_t bytes : {huge, huge / 2})
      check_error(Status::no_resource, {"no room for"},
                  [&] { static_cast<void>(world.create_segment(MemoryKind::host, bytes)); });
    // The parts of the others, allocated before one rank's part failed, are free again.
    for (int i = 0; i < 3; ++i) {
      check_error(Status::no_resource, {"no room for"}, [&] {
        static_cast<void>(world.create_segment(MemoryKind::host, world.rank() == 1 ? huge / 2 : std::size_t{1} << 30));
      });
    }
    world.destroy_segment(world.create_segment(MemoryKind::host, std::size_t{1} << 20).id);
  });
}

TEST(BadTeam, IsRefused) {
  run_pair([](World& world) {
    check_error(Status::invalid_argument, {"no rank 2"}, [&] { static_cast<void>(world.make_team({0, 1, 2})); });
    check_error(Status::invalid_argument, {"ascend"}, [&] { static_cast<void>(world.make_team({1, 0})); });
    check_error(Status::invalid_argument, {"ascend"}, [&] { static_cast<void>(world.make_team({0, 0, 1})); });
    check_error(Status::invalid_argument, {"does not hold rank"},
                [&] { static_cast<void>(world.make_team({1 - world.rank()})); });
    check_error(Status::invalid_argument, {"propose different teams"}, [&] {
      static_cast<void>(world.make_team(world.rank() == 0 ? std::vector<int>{0, 1} : std::vector<int>{1}));
    });
    std::vector<std::unique_ptr<Team>> teams;
    for (std::uint32_t i = 1; i < max_teams; ++i) teams.push_back(world.make_team({0, 1}));
    check_error(Status::no_resource, {"teams together, the most"}, [&] { static_cast<void>(world.make_team({0, 1})); });
    check_error(Status::invalid_argument, {"rank 2 of a team of 2"},
                [&] { static_cast<void>(teams.front()->world_rank(2)); });
    teams.pop_back();
    teams.back() = world.make_team({0, 1});
  });
}

struct Nothing {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context&) const {}
};

struct WaitForSignal {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* signal) const {
    static_cast<void>(wait(grid.block(), ctx, signal, Compare::equal, 1));
  }
};

LaunchOptions shape(unsigned blocks, unsigned threads, bool waits, Stream* stream = nullptr) {
  LaunchOptions options;
  options.blocks = blocks;
  options.threads = threads;
  options.waits = waits;
  options.stream = stream;
  return options;
}

/// Blocks of 64 threads that may wait on the rank's device.
template <class Kernel, class... Args>
unsigned most_blocks(World& world, const Kernel& kernel, Args... args) {
  if (!world.device().is_gpu()) return max_host_threads / static_cast<unsigned>(world.config().host_threads);
  return resident_blocks(world, 64, kernel, args...) * static_cast<unsigned>(world.ranks_on_device());
}

void refuse_bad_launches(World& world) {
  check_error(Status::invalid_argument, {"Nothing", "0 blocks"},
              [&] { launch(world, shape(0, 64, false), Nothing{}); });
  check_error(Status::invalid_argument, {"Nothing", "0 threads"},
              [&] { launch(world, shape(1, 0, false), Nothing{}); });
  if (world.device().is_gpu())
    check_error(Status::invalid_argument, {"1025 threads"}, [&] { launch(world, shape(1, 1025, false), Nothing{}); });
  const unsigned most = most_blocks(world, Nothing{});
  check_error(Status::no_resource, {"Nothing", "blocks", "%", "resident_blocks"},
              [&] { launch(world, shape(most + 1, 64, true), Nothing{}); });
  launch(world, shape(most + 1, 64, false), Nothing{});
  world.synchronize();
  LaunchOptions named = shape(0, 64, true);
  named.name = "filling";
  check_error(Status::invalid_argument, {"launching filling: 0 blocks"}, [&] { launch(world, named, Nothing{}); });
  named.blocks = most + 1;
  check_error(Status::no_resource, {"rank ", "'s filling ("}, [&] { launch(world, named, Nothing{}); });
}

/// A second waiting grid that does not fit beside the first is refused, and fits once the first has ended.
void refuse_a_second_grid(World& world) {
  const Signals signal(world, 1);
  const unsigned most =
      most_blocks(world, WaitForSignal{}, signal.data()) / static_cast<unsigned>(world.ranks_on_device());
  const std::unique_ptr<Stream> other = world.make_stream();
  launch(world, shape(most, 64, true), WaitForSignal{}, signal.data());
  if (world.ranks_on_device() == 1)
    check_error(Status::no_resource, {"WaitForSignal", "rank 0", "holds 100 %"},
                [&] { launch(world, shape(1, 64, true, other.get()), WaitForSignal{}, signal.data()); });
  const std::unique_ptr<Stream> releasing = world.make_stream();
  releasing->write_signal(signal.data(), 1);
  world.synchronize();
  launch(world, shape(most, 64, true, other.get()), WaitForSignal{}, signal.data());
  world.synchronize(*other);
}

class BadLaunch : public ::testing::TestWithParam<const char*> {};

TEST_P(BadLaunch, IsRefused) {
  std::string why;
  if (GetParam() != std::string("cpu") && gpus_here(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  Config config = test_config();
  config.device = GetParam();
  const auto body = [](World& world) {
    refuse_bad_launches(world);
    refuse_a_second_grid(world);
  };
  expect_all_passed(run_ranks(WorldKind::threads, 1, body, config, 60));
}

INSTANTIATE_TEST_SUITE_P(Devices, BadLaunch, ::testing::Values("cpu", "auto"),
                         [](const auto& each) { return std::string(each.param); });

void expect_no_world(Status code, std::initializer_list<std::string_view> words, const Config& config) {
  try {
    check_error(code, words, [&] { static_cast<void>(World::create(config, make_single_bootstrap())); });
  } catch (const CheckFailure& failure) {
    ADD_FAILURE() << failure.what();
  }
}

TEST(BadConfig, DeviceIsNamed) {
  for (const char* device : {"gpu", "cuda", "cuda:", "CPU", ""}) {
    Config config = test_config();
    config.device = device;
    expect_no_world(Status::invalid_argument, {std::string("\"") + device + "\"", "auto, cpu, cuda:ID"}, config);
  }
  for (const char* id : {"99", "-1", "0x", "GPU-00000000-0000-0000-0000-000000000000"}) {
    Config config = test_config();
    config.device = std::string("cuda:") + id;
    expect_no_world(Status::invalid_argument, {config.device, "GPU(s) visible"}, config);
  }
}

TEST(BadConfig, SlotsHaveLimits) {
  Config config = test_config();
  config.device = "cpu";
  for (const std::uint32_t shift : {0u, 31u, 41u, 64u}) {
    config.slot_shift = shift;
    expect_no_world(Status::invalid_argument, {std::to_string(shift), "BEELINE_SLOT_SHIFT"}, config);
  }
}

TEST(BadConfig, RanksMustAgree) {
  auto bootstraps = make_thread_bootstraps(2);
  Config config = test_config();
  config.device = "cpu";
  std::thread other([config, mine = std::move(bootstraps[1])]() mutable {
    config.heap_bytes += 4096;
    try {
      static_cast<void>(World::create(config, std::move(mine)));
    } catch (const Error&) {
      return;
    }
    ADD_FAILURE() << "a world of ranks with differing heaps";
  });
  try {
    check_error(Status::invalid_argument, {"rank 0", "rank 1", "must agree"},
                [&] { static_cast<void>(World::create(config, std::move(bootstraps[0]))); });
  } catch (const CheckFailure& failure) {
    ADD_FAILURE() << failure.what();
  }
  other.join();
}

TEST(BadConfig, SizesAndRanksThatNoWorldHas) {
  for (const int size : {0, -1, 1025}) {
    Config config = test_config();
    config.size = size;
    const std::string text = "1 to 1024 ranks, not " + std::to_string(size);
    EXPECT_NO_THROW(check_error(Status::invalid_argument, {text}, [&] { static_cast<void>(World::create(config)); }));
    config.threads = true;
    EXPECT_EQ(1, run(config, [](World&) { ADD_FAILURE() << "a rank of no world"; }));
  }
  for (const int rank : {-1, 2}) {
    Config config = test_config();
    config.size = 2;
    config.rank = rank;
    EXPECT_NO_THROW(check_error(Status::invalid_argument, {"rank " + std::to_string(rank) + " of a world of 2"},
                                [&] { static_cast<void>(World::create(config)); }));
  }
}

TEST(BadConfig, ThreadsNeedBeelineRun) {
  Config config = test_config();
  config.size = 4;
  config.threads = true;
  EXPECT_THROW(static_cast<void>(World::create(config)), Error);
}

}  // namespace

}  // namespace beeline_test::bad_input_test
