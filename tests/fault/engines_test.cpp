// SPDX-License-Identifier: Apache-2.0
// Engines that refuse a peer, that are slow, and that stop: every operation ends, with an error that gives the reason.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/stopwatch.hpp"
#include "tests/support/test_engine.hpp"

namespace beeline_test::engines_test {

namespace {

using namespace beeline;

constexpr double deadline_s = 1.5;

enum class Call : std::uint32_t {
  put,
  get,
  put_signal,
  put_value,
  put_strided,
  get_strided,
  bulk_put,
  bulk_get,
  signal,
  signal_add,
  put_signal_add,
  put_word,
  atomic_add,
  fetch_add,
  compare_swap
};
constexpr Call calls[] = {Call::put,         Call::get,         Call::put_signal,  Call::put_value,
                          Call::put_strided, Call::get_strided, Call::bulk_put,    Call::bulk_get,
                          Call::signal,      Call::signal_add,  Call::put_word,    Call::put_signal_add,
                          Call::atomic_add,  Call::fetch_add,   Call::compare_swap};

struct CallArguments {
  std::uint64_t *words, *mine;  ///< [16] at the peer, and on this rank
  std::uint32_t* status;        ///< returned by the last call
  std::uint32_t peer, repeats;
  bool drops;  ///< whether the kernel ignores what calls return
};

struct CallKernel {
  Call call;
  static constexpr std::size_t shared_bytes = sizeof(BulkBuffer);

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CallArguments a) const {
    for (std::uint32_t i = 0; i < a.repeats; ++i) {
      const Status status = once(grid.block(), ctx, a);
      if (grid.thread_rank() == 0) *a.status = static_cast<std::uint32_t>(status);
      if (status != Status::ok && !a.drops) return;
    }
  }

 private:
  template <class Block>
  BEELINE_HOST_DEVICE Status once(const Block& block, const Context& ctx, const CallArguments& a) const {
    const StridedShape shape{2, 1, 2, 2};
    switch (call) {
      case Call::put:
        return put(block, ctx, a.words, a.mine, 2, a.peer);
      case Call::get:
        return get(block, ctx, a.mine, a.words, 2, a.peer);
      case Call::put_signal:
        return put_signal(block, ctx, a.words, a.mine, 2, a.words + 4, 1, a.peer);
      case Call::put_strided:
        return put_strided(block, ctx, a.words, a.mine, shape, a.peer);
      case Call::get_strided:
        return get_strided(block, ctx, a.mine, a.words, shape, a.peer);
      case Call::bulk_put:
        return BulkPort(block, ctx, bulk_buffer()).put(a.words, a.mine, 2, a.peer);
      case Call::bulk_get:
        return BulkPort(block, ctx, bulk_buffer()).get(a.mine, a.words, 2, a.peer);
      case Call::signal:
        return signal(block, ctx, a.words, 1, a.peer);
      case Call::signal_add:
        return signal_add(block, ctx, a.words, 1, a.peer);
      case Call::put_signal_add:
        return put_signal_add(block, ctx, a.words, a.mine, 2, a.words + 4, 1, a.peer);
      default:
        return block.thread_rank() == 0 ? of_a_thread(ctx, a) : Status::ok;
    }
  }
  BEELINE_HOST_DEVICE Status of_a_thread(const Context& ctx, const CallArguments& a) const {
    std::uint64_t before = 0;
    switch (call) {
      case Call::put_value:
        return put_value(ctx, a.words, std::uint64_t{1}, a.peer);
      case Call::put_word:
        return put_signal(ctx, reinterpret_cast<SignaledWord*>(a.words), 1, 1, a.peer);
      case Call::atomic_add:
        return atomic_add(ctx, a.words, 1, a.peer);
      case Call::fetch_add:
        return atomic_fetch_add(ctx, a.words, 1, a.peer, before);
      default:
        return atomic_compare_swap(ctx, a.words, 0, 1, a.peer, before);
    }
  }
};

/// What both ranks have.
struct Scene {
  explicit Scene(World& in) : world(in), words(in, 16), mine(in, 16), status(in, 1) {}

  void launch_call(Team& team, Call call, std::uint32_t repeats, bool drops = false, Stream* stream = nullptr) {
    LaunchOptions options;
    options.threads = 64;
    options.stream = stream;
    launch(team, options, CallKernel{call},
           CallArguments{words.data(), mine.data(), status.data(), static_cast<std::uint32_t>(1 - world.rank()),
                         repeats, drops});
    world.synchronize(stream != nullptr ? *stream : world.stream());
  }
  [[nodiscard]] Status returned() {
    std::uint32_t value = 0;
    world.copy(&value, status.data(), sizeof value);
    return static_cast<Status>(value);
  }

  World& world;
  SymmetricArray<std::uint64_t> words, mine;
  SymmetricArray<std::uint32_t> status;
};

class Engines : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string why;
    if (on_gpu() && gpus_here(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  }
  [[nodiscard]] static bool on_gpu() { return GetParam(); }
  static void run(const EnginePlan& plan, const std::function<void(World&)>& body, int ranks = 2,
                  std::size_t chunk_bytes = Config{}.chunk_bytes) {
    Config config = test_config();
    config.chunk_bytes = chunk_bytes;
    config.device = on_gpu() ? "cuda:0" : "cpu";
    config.deadline_ns = static_cast<std::int64_t>(deadline_s * 1e9);
    config.engines = std::make_shared<TestEngines>(plan);
    expect_all_passed(run_ranks(WorldKind::threads, ranks, body, config));
  }
};

TEST_P(Engines, RefuseAPeerWithTheReason) {
  EnginePlan plan;
  plan.refused_peer = 1;
  plan.reason = "its cable is cut";
  run(plan, [](World& world) {
    Scene scene(world);
    const std::vector<std::uint64_t> start(16, 7);
    for (const Call call : calls) {
      const std::unique_ptr<Team> team = world.make_team({0, 1});  // its abort leaves the world alone
      world.copy(scene.words.data(), start.data(), scene.words.bytes());
      world.barrier();
      if (world.rank() == 0) {
        check_error(Status::unreachable, {"on rank 1 in kernel", "no route leads to rank 1: its cable is cut"},
                    [&] { scene.launch_call(*team, call, 1); });
        BEELINE_CHECK(scene.returned() == Status::unreachable);
      } else {
        check_error(Status::aborted, {"no route leads to rank 1: its cable is cut"}, [&] { team->barrier(); });
      }
      world.barrier();
      std::vector<std::uint64_t> now(16);
      world.copy(now.data(), scene.words.data(), scene.words.bytes());
      BEELINE_CHECK(now == start);
    }
    std::uint64_t word = 0;
    if (world.rank() == 0)
      check_error(Status::unreachable, {"its cable is cut"},
                  [&] { world.copy(scene.words.at(1), &word, sizeof word); });
    BEELINE_CHECK(!world.failed());
    world.barrier();
  });
}

/// If an engine stops, waits end at the deadline; calls that do not wait continue until the ring is full.
TEST_P(Engines, ThatStopEndWaitsAtTheDeadline) {
  for (const Call call : {Call::fetch_add, Call::get, Call::put, Call::atomic_add}) {
    EnginePlan plan;
    plan.stuck_after = 5;
    run(plan, [call](World& world) {
      Scene scene(world);
      const std::unique_ptr<Team> team = world.make_team({0, 1});
      if (world.rank() == 0) {
        const bool waits = call == Call::fetch_add || call == Call::get;
        const std::string operation = name(waits && call == Call::get ? Operation::get
                                           : call == Call::put        ? Operation::put
                                                                      : Operation::atomic);
        // The commands that were served, and those that also fit the ring.
        const std::string sequence = join("sequence 6: expected >= 6, observed ", waits ? "" : "5");
        const Stopwatch watch;
        check_error(Status::deadline, {"rank 0: " + operation + " on rank 1 in kernel", sequence},
                    [&] { scene.launch_call(*team, call, 1000); });
        BEELINE_CHECK(watch.seconds() < 4 * deadline_s);
        BEELINE_CHECK(scene.returned() == Status::deadline);
      } else {
        while (!team->failed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        check_error(Status::aborted, {"rank 0: ", "on rank 1"}, [&] { team->barrier(); });
      }
    });
  }
}

/// A kernel that ignores the results of its calls waits for one deadline, not for one in each call.
TEST_P(Engines, ThatStopCostOneDeadline) {
  EnginePlan plan;
  plan.stuck_after = 5;
  run(plan, [](World& world) {
    Scene scene(world);
    const std::unique_ptr<Team> team = world.make_team({0, 1});
    if (world.rank() == 0) {
      const Stopwatch watch;
      check_error(Status::deadline, {"rank 0: put on rank 1 in kernel"},
                  [&] { scene.launch_call(*team, Call::put, command_ring_depth + 100, true); });
      BEELINE_CHECK(watch.seconds() < 4 * deadline_s);
      BEELINE_CHECK(scene.returned() == Status::aborted);
    } else {
      while (!team->failed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      check_error(Status::aborted, {"rank 0: ", "on rank 1"}, [&] { team->barrier(); });
    }
  });
}

/// A kernel that gives up at a full ring leaves the ring usable for other teams.
TEST_P(Engines, ThatGoOnServeOtherTeams) {
  EnginePlan plan;
  plan.gate = std::make_shared<std::atomic<bool>>(false);
  run(plan, [&plan](World& world) {
    Scene scene(world);
    const std::unique_ptr<Team> team = world.make_team({0, 1});
    if (world.rank() == 0) {
      check_error(Status::deadline, {"rank 0: put on rank 1 in kernel"},
                  [&] { scene.launch_call(*team, Call::put, command_ring_depth + 1); });
      *plan.gate = true;
      const std::unique_ptr<Stream> fresh = world.make_stream();  // the team's stream reports the failed kernel
      scene.launch_call(world, Call::fetch_add, 1, false, fresh.get());
      BEELINE_CHECK(scene.returned() == Status::ok);
    } else {
      while (!team->failed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    world.barrier();
    std::uint64_t first = 0;
    world.copy(&first, scene.words.data(), sizeof first);
    BEELINE_CHECK_EQ(world.rank() == 1 ? 1u : 0u, first);
    world.barrier();
  });
}

/// An abort changes the status of a `get`, but does not end its wait: the engine may yet write its destination. It ends
/// the wait of operations that fetch a word.
TEST_P(Engines, EndAGetThatAnAbortFinds) {
  if (on_gpu()) GTEST_SKIP() << "CPU threads post";
  EnginePlan plan;
  plan.gate = std::make_shared<std::atomic<bool>>(false);
  run(plan, [&plan](World& world) {
    const SymmetricArray<std::uint64_t> word(world, 2, Heap::pinned);
    *word.data() = 40 + static_cast<std::uint64_t>(world.rank());
    const std::unique_ptr<Team> team = world.make_team({0, 1});
    world.barrier();
    if (world.rank() == 0) {
      const Context& ctx = team->host_context();
      std::uint64_t got = 0;
      Status status = Status::ok;
      const beeline::detail::SystemAtomic<std::uint64_t> posted(ctx.routes->tickets[0].next);
      const std::uint64_t posted_before = posted.load(std::memory_order_relaxed);
      std::thread getter([&] { status = get(Thread{}, ctx, &got, word.data(), 1, 1); });
      while (posted.load(std::memory_order_relaxed) == posted_before) std::this_thread::yield();
      std::uint64_t before = 0;
      BEELINE_CHECK(put_value(ctx, word.data(), std::uint64_t{1}, 2) == Status::invalid_argument);  // aborts the team
      for (int i = 0; i < 5; ++i)
        BEELINE_CHECK(atomic_fetch_add(ctx, word.data() + 1, 1, 1, before) == Status::aborted);
      *plan.gate = true;
      getter.join();
      BEELINE_CHECK(status == Status::aborted);
      BEELINE_CHECK_EQ(41u, got);
    }
    world.barrier();
  });
}

/// The deadline applies to each chunk of the host's copies.
TEST_P(Engines, CarryCopiesThatTakeLongerThanTheDeadline) {
  EnginePlan plan;
  plan.ns_per_byte = 200'000;
  run(
      plan,
      [](World& world) {
        constexpr std::size_t bytes = 12 << 10;  // 2.4 s
        const SymmetricArray<std::byte> memory(world, bytes);
        const std::vector<std::byte> mine(bytes, std::byte{7});
        world.barrier();
        if (world.rank() == 0) world.copy(memory.at(1), mine.data(), bytes);
        while (world.barrier(Timeout{100'000'000}) == Status::timeout) {  // each has a deadline of its own
        }
        std::vector<std::byte> now(bytes);
        world.copy(now.data(), memory.data(), bytes);
        BEELINE_CHECK((now == mine) == (world.rank() == 1));
        world.barrier();
      },
      2, 1024);
}

/// A slow engine's ring is full most of the time, and nothing is lost.
TEST_P(Engines, ThatAreSlowLoseNothing) {
  EnginePlan plan;
  plan.pause_us = 200;
  run(plan, [](World& world) {
    Scene scene(world);
    world.barrier();
    constexpr std::uint32_t posts = 5 * command_ring_depth;
    scene.launch_call(world, Call::atomic_add, posts);
    BEELINE_CHECK(scene.returned() == Status::ok);
    scene.launch_call(world, Call::fetch_add, 1);  // after them in the ring
    world.barrier();
    std::uint64_t sum = 0;
    world.copy(&sum, scene.words.data(), sizeof sum);
    BEELINE_CHECK_EQ(std::uint64_t{posts} + 1, sum);
    world.barrier();
  });
}

struct MixKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* words) const {
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      put_signal(grid.block(), ctx, words + ctx.rank, words + 4 + ctx.rank, 1, words + 8 + ctx.rank, 1, peer);
      if (grid.thread_rank() == 0) atomic_add(ctx, words + 12, 1, peer);
    }
    static_cast<void>(quiet(grid.block(), ctx));
  }
};

/// One world may reach some of its peers directly, and others by engines.
TEST_P(Engines, StandBesideDirectPeers) {
  EnginePlan plan;
  plan.direct_peer = 2;
  constexpr int ranks = 3;
  run(
      plan,
      [](World& world) {
        const SymmetricArray<std::uint64_t> words(world, 16);
        std::vector<std::uint64_t> mine(16);
        const auto rank = static_cast<std::uint32_t>(world.rank());
        mine[4 + rank] = 40 + rank;
        world.copy(words.data(), mine.data(), words.bytes());
        for (std::uint32_t peer = 0; peer < ranks; ++peer)
          BEELINE_CHECK((world.context().access_to(peer).access == PeerAccess::direct) ==
                        (peer == rank || peer == 2 || rank == 2));
        BEELINE_CHECK((world.context().has_routes == 0) == (rank == 2));
        // Also on rank 2, which reaches all: no rank waits for one that was refused.
        for (const std::function<void()>& make : std::initializer_list<std::function<void()>>{
                 [&] { const Collectives refused(world); }, [&] { const Messages refused(world); },
                 [&] { const PacketRings refused(world, 64); }})
          check_error(Status::unreachable, {"rank 0 does not reach rank 1 by loads and stores"}, make);
        world.barrier();
        LaunchOptions options;
        options.threads = 64;
        launch(world, options, MixKernel{}, words.data());
        world.synchronize();
        world.barrier();
        std::vector<std::uint64_t> now(16);
        world.copy(now.data(), words.data(), words.bytes());
        for (std::uint64_t from = 0; from < ranks; ++from) BEELINE_CHECK_EQ(40 + from, now[from]);
        for (std::uint64_t from = 0; from < ranks; ++from) BEELINE_CHECK_EQ(1u, now[8 + from]);
        BEELINE_CHECK_EQ(3u, now[12]);
        world.barrier();
      },
      ranks);
}

/// The poster's next wait for a stream reports the refusal; a wait for its signal reports it at the deadline.
TEST(RefusedCommands, AppearInTheErrorsOfBothRanks) {
  Config config = test_config("cpu");
  config.deadline_ns = 1'000'000'000;
  const auto body = [](World& world) {
    const CommandQueues queues(world);
    const SymmetricArray<std::byte> bytes(world, 4096);
    const Signals arrived(world, 1);
    const std::string refusal = "rank 0's engine refused command 1 of a queue (put";
    world.barrier();
    if (world.rank() == 0) {
      const auto* const nowhere = reinterpret_cast<const std::byte*>(std::uintptr_t{4096});
      const CommandQueue queue = queues.channel().queue(0);
      const Context& ctx = world.host_context();
      BEELINE_CHECK(post_put(Thread{}, ctx, bytes.data(), nowhere, 4096, 1, queue) == Status::ok);
      BEELINE_CHECK(post_signal(Thread{}, ctx, arrived.data(), 1, 1, queue) == Status::ok);
      BEELINE_CHECK(quiet(Thread{}, ctx, queue) == Status::invalid_argument);
      check_error(Status::invalid_argument, {refusal, "not there"}, [&] { world.synchronize(); });
      while (!world.failed())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until the other rank has waited in vain
    } else {
      wait_on_stream(world, {.signal = arrived.data(), .peer = 0});
      check_error(Status::deadline, {"expected >= 1, observed 0", refusal}, [&] { world.synchronize(); });
    }
  };
  for (const RankOutcome& outcome : run_ranks(WorldKind::threads, 2, body, config)) EXPECT_EQ("", outcome.failure);
}

INSTANTIATE_TEST_SUITE_P(Devices, Engines, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& info) { return info.param ? "one_gpu" : "cpu"; });

}  // namespace

}  // namespace beeline_test::engines_test
