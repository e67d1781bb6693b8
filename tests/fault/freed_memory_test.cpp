// SPDX-License-Identifier: Apache-2.0
// Memory of a rank on another node that is freed before data for it arrive: its owner refuses them, and nothing else is
// written.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/split_nodes.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::freed_memory_test {

namespace {

using namespace beeline;
using namespace std::chrono_literals;

constexpr const char* is_gone = "no memory of its peer is there (any more)";

void put_to_freed_memory(World& world, std::uint64_t* place, bool in_batch) {
  const Context& ctx = world.host_context();
  BatchEntry entries[2];
  PutBatch batch(ctx, entries, 2);
  if (in_batch) {
    batch.begin(Thread{}, 1);
    batch.put(Thread{}, place, &ctx.deadline_ns, 1);
    batch.signal(Thread{}, place + 1, 1);
    static_cast<void>(batch.end(Thread{}));
  } else {
    put_value(ctx, place, std::uint64_t{7}, 1);
  }
  static_cast<void>(quiet(Thread{}, ctx));
}

class FreedMemory : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(In, FreedMemory, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "batch" : "put"; });

TEST_P(FreedMemory, IsRefusedByItsOwner) {
  SKIP_WITHOUT_UCX();
  const auto outcomes = run_ranks(
      WorldKind::processes, 2,
      [in_batch = GetParam()](World& world) {
        const Segment segment = world.create_segment(MemoryKind::host, 4096);
        auto* const place =
            reinterpret_cast<std::uint64_t*>(segment.parts[static_cast<std::size_t>(world.rank())].address);
        world.destroy_segment(segment.id);
        const auto use = [&] {
          world.barrier();
          if (world.rank() == 0) put_to_freed_memory(world, place, in_batch);
          world.barrier();
        };
        try {
          use();
          throw CheckFailure("no error");
        } catch (const Error& error) {
          const char* const named = in_batch ? "batch of 2 entries, rank 1" : "store of 8 bytes";
          BEELINE_CHECK_CONTAINS(error.what(), join("rank 1's engine refused: ", named));
          BEELINE_CHECK_CONTAINS(error.what(), join("of rank 0: ", in_batch ? "entry 0 (put_inline of 8 bytes" : ""));
          BEELINE_CHECK_CONTAINS(error.what(), "no memory of its peer is there (any more)");
        }
      },
      split_config());
  for (const RankOutcome& outcome : outcomes) EXPECT_TRUE(outcome.passed()) << outcome.failure;
}

constexpr std::size_t words = 64;

/// Objects of the ways to write to another node.
struct Writers {
  World& world;
  SymmetricArray<std::uint64_t> source{world, words};
  CommandQueues queues{world}, device_queues{world, 1, {.engine = EngineKind::device}};
  Triggers engine{world};
  Triggers guarded{world, {.by = TriggeredBy::guarded_stream}};
  Triggers streams{world, {.by = TriggeredBy::stream}};
};

using Refusals = std::vector<std::string>;

void post(Writers& use, const CommandQueues& queues, std::uint64_t* place) {
  const CommandQueue queue = queues.channel().queue(0);
  const Context& ctx = use.world.host_context();
  BEELINE_CHECK(post_put(Thread{}, ctx, place, use.source.data(), words, 1, queue) == Status::ok);
}
void fire(Writers& use, Triggers& triggers, std::uint64_t* place) {
  const auto put = TriggeredOperation::put(place, use.source.data(), words, 1);
  static_cast<void>(triggers.arm(put, {.tag = 0, .threshold = triggers.count(0) + 1}));
  triggers.trigger(0);
}
/// What ended the world.
Refusals failure_of(Writers& use) {
  try {
    use.world.check();
  } catch (const Error& error) {
    return {error.what()};
  }
  return {};
}

/// A way in which rank 0 writes to `place` at rank 1, without a wait for the data.
struct Way {
  const char* name;
  void (*write)(Writers& use, std::uint64_t* place);
  Refusals (*refusals)(Writers& use);
  bool is_refused;  ///< otherwise the data may arrive before the segment ends
};
const Way ways[] = {
    {"CommandQueue", [](Writers& use, std::uint64_t* place) { post(use, use.queues, place); },
     [](Writers& use) { return use.queues.refusals(); }, true},
    {"DeviceEngine", [](Writers& use, std::uint64_t* place) { post(use, use.device_queues, place); },
     [](Writers& use) { return use.device_queues.refusals(); }, true},
    {"TriggerByEngine", [](Writers& use, std::uint64_t* place) { fire(use, use.engine, place); },
     [](Writers& use) { return use.engine.refusals(); }, true},
    {"TriggerByGuardedStream", [](Writers& use, std::uint64_t* place) { fire(use, use.guarded, place); }, failure_of,
     false},
    {"TriggerByStream", [](Writers& use, std::uint64_t* place) { fire(use, use.streams, place); }, failure_of, false},
};

/// Waits for a refusal while data may be in flight.
Refusals await_refusals(const Way& way, Writers& use) {
  for (const Stopwatch stopwatch; stopwatch.seconds() < 0.5; std::this_thread::sleep_for(1ms))
    if (const Refusals found = way.refusals(use); !found.empty()) return found;
  return {};
}

/// Writes to a segment that is destroyed meanwhile, until the data come too late for it. A refusal by the target of a
/// command that is no queue's ends the world.
void write_to_freed_memory(const Way& way, Writers& use) {
  const auto own = static_cast<std::size_t>(use.world.rank());
  Refusals found;
  for (int attempt = 0; attempt < (way.is_refused ? 40 : 3) && found.empty(); ++attempt) {
    const Segment segment = use.world.create_segment(MemoryKind::host, words * sizeof(std::uint64_t));
    if (own == 0) way.write(use, reinterpret_cast<std::uint64_t*>(segment.parts[own].address));
    use.world.destroy_segment(segment.id);
    if (own == 0) found = await_refusals(way, use);
    if (use.world.allreduce(found.size()) != 0) break;
  }
  for (const std::string& each : found) BEELINE_CHECK_CONTAINS(each, is_gone);
  BEELINE_CHECK(own != 0 || !way.is_refused || found.size() == 1);
}

class FreedInFlight : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(By, FreedInFlight, ::testing::ValuesIn(ways),
                         [](const auto& way) { return std::string(way.param.name); });

/// Messages of rank 0 are late, so that a segment may be gone when data for it arrive.
TEST_P(FreedInFlight, IsRefusedByItsOwner) {
  SKIP_WITHOUT("sockets");
  expect_all_passed(run_processes(
      2,
      [](const Config& config) {
        Config own = config;
        if (own.rank == 0) own.transports += ":delay_us=10000";
        const std::unique_ptr<World> world = World::create(own);
        Writers use{*world};
        try {
          write_to_freed_memory(GetParam(), use);
        } catch (const Error& error) {
          BEELINE_CHECK_CONTAINS(error.what(), is_gone);
        }
      },
      split_config(5'000'000'000, "sockets")));
}

}  // namespace

}  // namespace beeline_test::freed_memory_test
