// SPDX-License-Identifier: Apache-2.0
// Hybrid transfers that are refused, time out or fail. A refused call touches nothing; after a time-out or a failure
// the same call continues; the object is usable afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"

namespace beeline_test::hybrid_calls_test {

namespace {

using namespace beeline;

constexpr std::size_t bytes = 50'000;
constexpr HybridOptions options{.threshold_bytes = 1, .chunk_bytes = 4096, .chunks = 2};

/// An object for transfers, and memory of both ranks.
struct Scene {
  explicit Scene(World& on) : world(on), hybrid(on, options), memory(on, bytes), gate(on, 1) { world.barrier(); }

  [[nodiscard]] int other() const { return 1 - world.rank(); }
  /// Checks that a transfer to the other rank succeeds.
  void expect_usable(std::uint64_t key) {
    const std::vector<std::byte> mine = pattern(key + static_cast<std::uint64_t>(world.rank()), bytes);
    world.barrier();
    hybrid.put(memory.data(), mine.data(), bytes, other());
    world.barrier();
    std::vector<std::byte> received(bytes);
    world.copy(received.data(), memory.data(), bytes);
    BEELINE_CHECK(received == pattern(key + static_cast<std::uint64_t>(other()), bytes));
    world.barrier();
  }
  /// Keeps the object busy: a transfer in it waits until `open` is called.
  void block(Stream& stream, const std::byte* from) {
    wait_on_stream(world, {.signal = gate.data(), .value = 1, .stream = &stream});
    hybrid.put_on_stream(memory.data(), from, bytes, other(), &stream);
  }
  void open() const { BEELINE_CHECK(signal(Thread{}, world.host_context(), gate.data(), 1, rank()) == Status::ok); }
  [[nodiscard]] std::uint32_t rank() const { return static_cast<std::uint32_t>(world.rank()); }

  World& world;
  HybridTransfers hybrid;
  SymmetricArray<std::byte> memory;
  SymmetricArray<std::uint64_t> gate;
};

/// Routes from one rank to the other.
enum class Way { by_copies, staged_by_world, by_ucx, by_sockets };

class HybridCalls : public ::testing::TestWithParam<Way> {
 protected:
  static void run(const std::function<void(Scene&)>& body, double deadline_s = 20) {
    const bool is_remote = GetParam() == Way::by_ucx || GetParam() == Way::by_sockets;
    const std::string transports = GetParam() == Way::by_ucx ? "ucx" : is_remote ? "sockets" : "";
    if (is_remote) SKIP_WITHOUT(transports);
    Config config = test_config("cpu");
    config.peer_access = GetParam() != Way::staged_by_world;
    config.split_nodes = is_remote ? 2 : 1;
    config.transports = transports;
    config.deadline_ns = static_cast<std::int64_t>(deadline_s * 1e9);
    expect_all_passed(run_ranks(
        WorldKind::threads, 2,
        [&](World& world) {
          Scene scene(world);
          body(scene);
        },
        config, 60));
  }
};

TEST_P(HybridCalls, OptionsThatDoNotFitAreRefused) {
  run([](Scene& scene) {
    World& world = scene.world;
    const std::size_t mine = world.rank() == 0 ? 1000 : 2000;
    check_error(Status::invalid_argument, {"hybrid transfers differ: 3 chunks of 1000 bytes, and on rank 1 3 of 2000"},
                [&] { const HybridTransfers differs(world, {.chunk_bytes = mine, .chunks = 3}); });
    check_error(Status::invalid_argument, {"hybrid transfers with 65 chunks in flight: at most 64"},
                [&] { const HybridTransfers many(world, {.chunks = 65}); });
    check_error(Status::no_resource, {},
                [&] { const HybridTransfers large(world, {.chunk_bytes = std::size_t{1} << 62, .chunks = 8}); });
    for (const HybridOptions& wrong :
         {HybridOptions{.chunk_bytes = 8193}, {.chunk_bytes = 4097}, {.chunks = 3}, {.chunk_bytes = 1, .chunks = 65}})
      check_error(Status::invalid_argument, {"were made with buffers of 8192 bytes, and at most 64 chunks"},
                  [&] { scene.hybrid.set(wrong); });
    BEELINE_CHECK_EQ(4096u, scene.hybrid.options().chunk_bytes);
    for (const HybridOptions& right : {HybridOptions{.chunk_bytes = 8192, .chunks = 1},
                                       {.chunk_bytes = 128, .chunks = 64},
                                       {.threshold_bytes = SIZE_MAX},
                                       {}}) {
      scene.hybrid.set(right);
      scene.expect_usable(1);
    }
  });
}

/// Rank 0 has a part of 4096 bytes, which is in a larger mapping; rank 1 has none.
TEST_P(HybridCalls, PutsBeyondThePeersPartOfASegmentAreRefused) {
  run([](Scene& scene) {
    World& world = scene.world;
    constexpr std::size_t part_bytes = 4096;
    const Segment segment = world.create_segment(MemoryKind::host, world.rank() == 0 ? part_bytes : 0);
    std::byte* const part = segment.parts[0].address;
    auto* const named = static_cast<std::byte*>(world.symmetric_address(part));
    const std::vector<std::byte> mine = pattern(3, part_bytes + 1);
    Stream& stream = world.stream();
    const auto refused = [](int peer, std::size_t room, const auto& call) {
      check_error(Status::invalid_argument,
                  {join("of which ", room, " fit before the end of rank ", peer, "'s segment")}, call);
    };
    const auto all_refused = [&](int peer, std::size_t offset, std::size_t room) {
      const std::size_t count = room + 1;
      std::byte* const to = named + offset;
      auto* const word = reinterpret_cast<std::uint64_t*>(to);
      refused(peer, room, [&] { put_on_stream(world, to, mine.data(), count, peer, &stream); });
      refused(peer, room, [&] {
        put_signal_on_stream(world, to, mine.data(), count, peer, {.signal = scene.gate.data(), .stream = &stream});
      });
      refused(peer, room, [&] { scene.hybrid.put(to, mine.data(), count, peer); });
      refused(peer, room, [&] { scene.hybrid.put_on_stream(to, mine.data(), count, peer, &stream); });
      if (room < sizeof *word) refused(peer, room, [&] { signal_on_stream(world, peer, {.signal = word}); });
      if (peer != 0) return;
      refused(peer, room, [&] { scene.hybrid.copy(part + offset, mine.data(), count); });
      refused(peer, room, [&] { scene.hybrid.copy_on_stream(part + offset, mine.data(), count, &stream); });
      refused(peer, room, [&] { world.copy(part + offset, mine.data(), count); });
    };
    for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, part_bytes - 4, part_bytes, 2 * part_bytes}) {
      all_refused(0, offset, offset < part_bytes ? part_bytes - offset : 0);
      all_refused(1, offset, 0);
    }
    world.synchronize(stream);
    world.barrier();
    if (world.rank() == 0)
      BEELINE_CHECK(std::vector<std::byte>(part, part + 2 * part_bytes) == std::vector<std::byte>(2 * part_bytes));
    world.barrier();
    if (world.rank() == 1) scene.hybrid.put(named, mine.data(), part_bytes, 0);
    world.barrier();
    if (world.rank() == 0) BEELINE_CHECK(std::equal(part, part + part_bytes, mine.begin()));
    world.destroy_segment(segment.id);
    all_refused(0, 0, 0);
    scene.expect_usable(1);
  });
}

TEST_P(HybridCalls, ZerosMeanTheConfiguration) {
  run([](Scene& scene) {
    const HybridTransfers hybrid(scene.world);
    const HybridOptions all = hybrid.options();
    BEELINE_CHECK_EQ(0u, all.threshold_bytes);
    BEELINE_CHECK_EQ(scene.world.config().hybrid_chunk_bytes, all.chunk_bytes);
    BEELINE_CHECK_EQ(static_cast<std::uint32_t>(scene.world.config().hybrid_chunks), all.chunks);
    const std::vector<std::byte> mine(2 * all.chunk_bytes);
    std::byte* const there = scene.world.at(scene.memory.data(), scene.other());
    // Only data that leave GPU memory for another node need buffers.
    BEELINE_CHECK(!hybrid.is_staged(there, mine.data(), mine.size()));
    BEELINE_CHECK(!hybrid.is_staged(mine.data() + 1, mine.data(), mine.size()));
  });
}

TEST_P(HybridCalls, BadArgumentsTouchNothing) {
  run([](Scene& scene) {
    std::vector<std::byte> mine = pattern(1, bytes);
    HybridTransfers& hybrid = scene.hybrid;
    std::byte* const to = scene.memory.data();
    const auto refused = [&](std::initializer_list<std::string_view> words, std::byte* destination,
                             const std::byte* source, std::size_t count, int peer) {
      check_error(Status::invalid_argument, words,
                  [&] { static_cast<void>(hybrid.put(destination, source, count, peer, Timeout::test())); });
      check_error(Status::invalid_argument, words, [&] { hybrid.put(destination, source, count, peer); });
      check_error(Status::invalid_argument, words, [&] { hybrid.put_on_stream(destination, source, count, peer); });
    };
    refused({"null address"}, to, nullptr, bytes, scene.other());
    refused({"is not in this rank's symmetric memory"}, mine.data(), to, bytes, scene.other());
    refused({"destination", "fit before the end of rank"}, to, mine.data(), std::size_t{1} << 37, scene.other());
    refused({"2"}, to, mine.data(), bytes, 2);
    refused({"-1"}, to, mine.data(), 0, -1);
    check_error(Status::invalid_argument, {"null address"}, [&] { hybrid.copy(nullptr, mine.data(), bytes); });
    check_error(Status::invalid_argument, {"overlap"}, [&] { hybrid.copy(mine.data() + 1, mine.data(), bytes - 1); });
    hybrid.copy(nullptr, nullptr, 0);
    hybrid.put(nullptr, nullptr, 0, scene.other());
    hybrid.put_on_stream(nullptr, nullptr, 0, scene.other());
    BEELINE_CHECK(mine == pattern(1, bytes));
    scene.expect_usable(2);
  });
}

/// Only the same call continues; other calls are separate meanwhile, and complete in order.
TEST_P(HybridCalls, TimeOutsAreContinued) {
  run([](Scene& scene) {
    const std::vector<std::byte> first = pattern(1, bytes), second = pattern(2, bytes), third = pattern(3, bytes);
    const std::unique_ptr<Stream> stream = scene.world.make_stream();
    const auto put = [&](const std::vector<std::byte>& data, Timeout timeout) {
      return scene.hybrid.put(scene.memory.data(), data.data(), bytes, scene.other(), timeout);
    };
    scene.block(*stream, first.data());
    BEELINE_CHECK(put(second, Timeout::test()) == Status::timeout);
    BEELINE_CHECK(put(third, Timeout{20'000'000}) == Status::timeout);
    BEELINE_CHECK(put(second, Timeout{20'000'000}) == Status::timeout);
    BEELINE_CHECK(scene.world.synchronize(*stream, Timeout::test()) == Status::timeout);
    BEELINE_CHECK(!scene.world.failed());
    scene.open();
    scene.world.synchronize(*stream);
    BEELINE_CHECK(put(third, Timeout{60'000'000'000}) == Status::ok);
    BEELINE_CHECK(put(second, Timeout::none()) == Status::ok);
    scene.world.barrier();
    std::vector<std::byte> received(bytes);
    scene.world.copy(received.data(), scene.memory.data(), bytes);
    BEELINE_CHECK(received == third);
    scene.expect_usable(4);
  });
}

class HybridDeadlines : public HybridCalls {};

TEST_P(HybridDeadlines, EndThem) {
  constexpr double deadline_s = 1;
  run(
      [](Scene& scene) {
        World& world = scene.world;
        if (world.rank() == 1) {
          while (!world.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          check_error(Status::aborted, {"rank 0"}, [&] { world.barrier(); });
          return;
        }
        static const std::vector<std::byte> mine(bytes);  // the object's streams may read it until they end
        const std::unique_ptr<Stream> stream = world.make_stream();
        scene.block(*stream, mine.data());
        check_error(Status::deadline, {"rank 0"},
                    [&] { scene.hybrid.put(scene.memory.data(), mine.data(), bytes, 1); });
      },
      deadline_s);
}

std::string name_of(const ::testing::TestParamInfo<Way>& way) {
  constexpr const char* names[] = {"Copies", "StagedCopies", "Ucx", "Sockets"};
  return names[static_cast<int>(way.param)];
}

INSTANTIATE_TEST_SUITE_P(Over, HybridCalls,
                         ::testing::Values(Way::by_copies, Way::staged_by_world, Way::by_ucx, Way::by_sockets),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Over, HybridDeadlines, ::testing::Values(Way::by_copies, Way::by_sockets), name_of);

/// An owner unmaps a piece of memory while a transfer to it is in flight, and then refuses the remaining chunks.
TEST(HybridTransfersInFlight, ToMemoryThatIsUnmappedAreRefused) {
  SKIP_WITHOUT_UCX();
  expect_all_passed(run_ranks(
      WorldKind::threads, 2,
      [](World& world) {
        HybridTransfers hybrid(world, options);
        const Signals gate(world, 1);
        const Segment& segment = world.create_segment(MemoryKind::host, bytes);
        const std::vector<std::byte> mine(bytes);
        const std::unique_ptr<Stream> stream = world.make_stream();
        if (world.rank() == 0) {
          wait_on_stream(world, {.signal = gate.data(), .value = 1, .stream = stream.get()});
          hybrid.copy_on_stream(segment.parts[1].address, mine.data(), bytes, stream.get());
        }
        world.destroy_segment(segment.id);
        std::string text;
        try {
          if (world.rank() == 0) {
            BEELINE_CHECK(signal(Thread{}, world.host_context(), gate.data(), 1, 0) == Status::ok);
            world.synchronize(*stream);
          }
          world.barrier();
        } catch (const Error& error) {
          text = error.what();
        }
        BEELINE_CHECK_CONTAINS(text, "rank 1's engine refused: put of 1 x 4096 bytes");
      },
      split_config(), 60));
}

}  // namespace

}  // namespace beeline_test::hybrid_calls_test
