// SPDX-License-Identifier: Apache-2.0
// Leaving a world and freeing memory: earlier errors are not lost, and a rank that leaves is not taken for one that
// takes part in another call.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/beeline.hpp"
#include "runtime/forwarding_bootstrap.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::leaving_test {

namespace {

using namespace beeline;

Config host_config() {
  Config config = test_config();
  config.device = "cpu";
  config.deadline_ns = 1'500'000'000;
  return config;
}

/// Waits for a signal that no rank sends.
struct WaitInVain {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const std::uint64_t* signal) const {
    static_cast<void>(wait(grid.block(), ctx, signal, Compare::equal, 1));
  }
};

struct Throws {
  template <class Grid>
  void operator()(Grid&, const Context&) const {
    throw std::runtime_error("the kernel met a wolf");
  }
};

struct WritesLate {
  template <class Grid>
  void operator()(Grid&, const Context&, int* word) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    *word = 0x5a5a;
  }
};

class Leaving : public ::testing::TestWithParam<WorldKind> {
 protected:
  static void expect_good(int ranks, const std::function<void(World&)>& body) {
    expect_all_passed(run_ranks(GetParam(), ranks, body, host_config(), 60));
  }
};

TEST_P(Leaving, ThrowsWhatAKernelWaitedForInVain) {
  expect_good(1, [](World& world) {
    const Signals signal(world, 1);
    launch(world, {.waits = true}, WaitInVain{}, signal.data());
    check_error(Status::deadline, {"rank 0: wait", "expected == 1, observed 0"}, [&] { world.leave(); });
  });
}

TEST_P(Leaving, ThrowsWhatAKernelThrew) {
  expect_good(1, [](World& world) {
    launch(world, {}, Throws{});
    try {
      world.leave();
    } catch (const std::runtime_error& error) {
      BEELINE_CHECK_CONTAINS(error.what(), "wolf");
      return;
    }
    throw CheckFailure("no exception");
  });
}

TEST_P(Leaving, IsNoPartOfABarrier) {
  expect_good(2, [](World& world) {
    if (world.rank() == 1) {
      check_error(Status::aborted, {"rank 0", "barrier on rank 1", "this rank was in leave"}, [&] { world.leave(); });
    } else {
      check_error(Status::deadline, {"barrier on rank 1", "rank 1 is in leave"}, [&] { world.barrier(); });
    }
  });
}

TEST_P(Leaving, IsNoPartOfAnotherCollectiveFunction) {
  expect_good(2, [](World& world) {
    check_error(Status::invalid_argument, {"is in leave", "is in allocate", "all ranks make the same calls"}, [&] {
      if (world.rank() == 1) world.leave();
      static_cast<void>(world.allocate(8));
    });
  });
}

TEST_P(Leaving, FreeIsOfTheSameMemory) {
  expect_good(2, [](World& world) {
    void* first = world.allocate(1024);
    void* second = world.allocate(1024);
    check_error(Status::invalid_argument, {"ranks free different memory", "rank 0", "rank 1", "offset"},
                [&] { world.free(world.rank() == 0 ? first : second); });
    world.free(first);
    world.free(second);
  });
}

/// If ranks destroyed different segments, later ones would have different offsets.
TEST_P(Leaving, DestroySegmentIsOfTheSameSegment) {
  expect_good(2, [](World& world) {
    const Segment segments[] = {world.create_segment(MemoryKind::host, 5000),
                                world.create_segment(MemoryKind::host, 100)};
    const int mine = world.rank(), other = 1 - mine;
    check_error(Status::invalid_argument,
                {join("ranks destroy different segments: rank ", mine, " segment ", segments[mine].id, ", rank ", other,
                      " segment ", segments[other].id)},
                [&] { world.destroy_segment(segments[mine].id); });
    for (const Segment& each : segments) {
      std::byte* const word = each.parts[0].address;
      if (mine == 0) *word = std::byte{0x5a};
      world.barrier();
      BEELINE_CHECK(*word == std::byte{0x5a});
      world.destroy_segment(each.id);
    }
  });
}

TEST_P(Leaving, FreeWaitsForKernels) {
  expect_good(2, [](World& world) {
    int* word = static_cast<int*>(world.allocate(sizeof(int)));
    launch(world, {}, WritesLate{}, word);
    world.free(word);
    int* again = static_cast<int*>(world.allocate(sizeof(int)));
    BEELINE_CHECK_EQ(word, again);
    world.synchronize();
    BEELINE_CHECK_EQ(0, *again);
    world.free(again);
  });
}

/// Starts an all-reduce, which completes when all ranks have called it.
void start_allreduce(Collectives& collectives, const SymmetricArray<float>& vector) {
  collectives.allreduce_on_stream(vector.data(), vector.data(), vector.count(), ElementType::float32, Reduction::sum);
}

void allreduce(World& world, Collectives& collectives, const SymmetricArray<float>& vector) {
  start_allreduce(collectives, vector);
  world.synchronize();
}

constexpr const char* missed_call = "collective on rank 1 in allreduce";

TEST_P(Leaving, HearsOfACollectiveThatItMissed) {
  expect_good(2, [](World& world) {
    const SymmetricArray<float> vector(world, 100);
    Collectives collectives(world);
    if (world.rank() == 1) {
      check_error(Status::aborted, {"rank 0", missed_call}, [&] { world.leave(); });
      return;
    }
    try {
      allreduce(world, collectives, vector);
    } catch (const Error& error) {
      BEELINE_CHECK_CONTAINS(error.what(), std::string("deadline: rank 0: ") + missed_call);
      return world.abort(error.what());
    }
    throw CheckFailure("no error");
  });
}

/// The deadline of rank 1, which frees memory, passes first.
TEST_P(Leaving, FreeHearsOfACollectiveThatItMissed) {
  expect_good(2, [](World& world) {
    void* const memory = world.allocate(64);
    const SymmetricArray<float> vector(world, 100);
    Collectives collectives(world);
    if (world.rank() == 1) {
      check_error(Status::deadline, {"free: ", "rank 0 joined, but did not make this call", "rank 0: ", missed_call},
                  [&] { world.free(memory); });
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(750));
    check_error(Status::aborted, {"rank 0: ", missed_call}, [&] { allreduce(world, collectives, vector); });
  });
}

TEST_P(Leaving, SegmentsNameThoseWhoAreInABarrier) {
  Config config = host_config();
  config.deadline_ns = 1'000'000'000;
  const auto create = [](World& world) { static_cast<void>(world.create_segment(MemoryKind::host, 64)); };
  const auto destroy = [](World& world) { world.destroy_segment(world.create_segment(MemoryKind::host, 64).id); };
  for (const auto& [call, use] : {std::pair<const char*, void (*)(World&)>{"create_segment", create},
                                  std::pair<const char*, void (*)(World&)>{"destroy_segment", destroy}})
    expect_all_passed(run_ranks(
        GetParam(), 2,
        [&, name = std::string(call), act = use](World& world) {
          if (world.rank() == 0)
            return check_error(
                Status::deadline,
                {name + ": not complete within 1 s; rank 1 joined, but did not make this call", "rank 1: barrier"},
                [&] { act(world); });
          if (name == "destroy_segment") static_cast<void>(world.create_segment(MemoryKind::host, 64));
          check_error(Status::aborted, {}, [&] {
            while (world.barrier(Timeout{50'000'000}) == Status::timeout) {
            }
          });
        },
        config, 60));
}

/// Only the deadline of rank 1, which leaves, can pass: the others' deadline restarts with each call.
TEST_P(Leaving, SaysWhyItEndsACollectiveOfTheOthers) {
  Config config = host_config();
  config.deadline_ns = 20'000'000'000;
  config.stream_deadline_ns = 300'000'000;
  const auto body = [](World& world) {
    const SymmetricArray<float> vector(world, 100);
    Collectives collectives(world);
    if (world.rank() == 1)
      check_error(Status::deadline, {"leave: not complete within 0.3 s; ranks 0, 2 joined"}, [&] { world.leave(); });
    else
      check_error(Status::aborted, {"rank 1: leave: not complete within 0.3 s; ranks 0, 2 joined"}, [&] {
        start_allreduce(collectives, vector);
        while (world.synchronize(Timeout{50'000'000}) == Status::timeout) {
        }
      });
  };
  expect_all_passed(run_ranks(GetParam(), 3, body, config, 60));
}

/// When a barrier's deadline passes on rank 0, leaving ranks end at once, not only at the deadline of streams.
TEST_P(Leaving, EndsWithTheWaitsOfTheOthers) {
  Config config = host_config();
  config.deadline_ns = 1'000'000'000;  // also of the set-up, in which a busy machine may hold up a process
  config.stream_deadline_ns = 20'000'000'000;
  const auto body = [](World& world) {
    if (world.rank() == 0)
      check_error(Status::deadline, {"rank 0: barrier on rank", "ranks 1, 2 are in leave"}, [&] { world.barrier(); });
    else
      check_error(Status::aborted, {"rank 0: barrier on", "this rank was in leave"}, [&] { world.leave(); });
  };
  expect_all_passed(run_ranks(GetParam(), 3, body, config, 60));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Leaving, ::testing::Values(WorldKind::threads, WorldKind::processes),
                         [](const auto& kind) { return kind.param == WorldKind::threads ? "Threads" : "Processes"; });

/// A bootstrap whose abort message arrives later than the abort words.
class SlowNews final : public ForwardingBootstrap {
 public:
  using ForwardingBootstrap::ForwardingBootstrap;
  void abort(const std::string& reason) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ForwardingBootstrap::abort(reason);
  }
};

TEST(Abort, SaysWhyBeforeTheNewsOfIt) {
  constexpr int ranks = 3;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::string> failures(ranks);
    std::vector<std::thread> threads;
    for (auto& bootstrap : make_thread_bootstraps(ranks))
      threads.emplace_back([&, mine = std::move(bootstrap)]() mutable {
        Config config = host_config();
        config.rank = mine->rank(), config.size = ranks, config.deadline_ns = 20'000'000'000;
        std::string& failure = failures[static_cast<std::size_t>(config.rank)];
        try {
          const auto world = World::create(config, std::make_unique<SlowNews>(std::move(mine)));
          const SymmetricArray<float> vector(*world, 100);
          Collectives collectives(*world);
          world->barrier();
          if (world->rank() == 1) return world->abort("the input file is empty");
          check_error(Status::peer_died, {": rank 1 aborted: the input file is empty"}, [&] {
            for (;;) allreduce(*world, collectives, vector);
          });
        } catch (const std::exception& error) {
          failure = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& failure : failures) EXPECT_EQ("", failure);
  }
}

Config threads_config() {
  Config config = host_config();
  config.threads = true;
  config.size = 2;
  config.deadline_ns = 500'000'000;
  return config;
}

TEST(RunDeathTest, EndsWhenAThreadDoesNotComeBack) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(static_cast<void>(run(threads_config(),
                                    [](World& world) {
                                      if (world.rank() == 0) world.barrier();
                                      std::this_thread::sleep_for(std::chrono::minutes(1));
                                    })),
              ::testing::ExitedWithCode(1), "rank 1 does not return from a world that has failed");
}

struct NeverReturns {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context&) const {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
};

/// The thread of the rank's stream cannot be joined.
TEST(RunDeathTest, EndsWhenAKernelDoesNotReturn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(static_cast<void>(run(threads_config(),
                                    [](World& world) {
                                      if (world.rank() == 1) launch(world, {}, NeverReturns{});
                                      throw Error(Status::internal, "on purpose");
                                    })),
              ::testing::ExitedWithCode(1), "rank 1: work on its streams does not end");
}

TEST(RunDeathTest, TakesAnyException) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(run(threads_config(), [](World&) { throw 42; })), ::testing::ExitedWithCode(1),
              "of type int, which is not a std::exception");
}

}  // namespace

}  // namespace beeline_test::leaving_test
