// SPDX-License-Identifier: Apache-2.0
// Streams that wait for triggers: they do what the engine does, or refuse.
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/conformance/rank_test.hpp"
#include "tests/conformance/trigger_kernels.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::trigger_stream_cases {

namespace {

constexpr TriggerOptions by_streams = {.by = TriggeredBy::stream};
constexpr TriggerOptions by_guarded_streams = {.by = TriggeredBy::guarded_stream};

BEELINE_CASE(trigger, streams_never_before_the_data, 1) {
  need_reach(test, test.world());
  for (const std::uint32_t words : {1u, 100u, 20'000u}) send_rounds(test, by_streams, words, 50);
}
BEELINE_CASE(trigger, guarded_streams_never_before_the_data, 1) {
  need_reach(test, test.world());
  for (const std::uint32_t words : {1u, 100u, 20'000u}) send_rounds(test, by_guarded_streams, words, 50);
}

/// The count of a tag persists from launch to launch; a count reached before the arming suffices.
void rise(RankTest& test, const TriggerOptions& options) {
  World& world = test.world();
  constexpr std::uint32_t blocks = 2, rounds = 5, count = 1000;
  Triggers triggers(world, options);
  const SymmetricArray<std::uint64_t> mine(world, count), there(world, count), got(world, count);
  const Signals signals(world, 2);
  const int ahead = test.ahead(1), behind = test.behind(1);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const auto data = [&](int rank) { return pattern(100 * round + static_cast<std::uint64_t>(rank), mine.bytes()); };
    test.write(mine.data(), data(test.rank()));
    const auto arm_all = [&] {
      triggers.arm(TriggeredOperation::put(there.data(), mine.data(), count, ahead).and_signal(signals.data(), round),
                   {7, (2 * round - 1) * blocks});
      return triggers.arm(
          TriggeredOperation::get(got.data(), mine.data(), count, behind).and_signal(signals.data() + 1, round),
          {7, 2 * round * blocks});
    };
    ArmedOperation last;
    if (round % 2 == 0) last = arm_all();
    world.barrier();
    trigger_by_blocks(test, triggers, 7, blocks, 2, false);
    if (round % 2 == 1) last = arm_all();  // triggers were first
    BEELINE_CHECK(Status::ok == triggers.wait(last));
    BEELINE_CHECK_EQ(2 * round * blocks, triggers.count(7));
    BEELINE_CHECK_EQ(0u, triggers.armed());
    world.barrier();
    check_bytes(data(behind), test.read(there.data(), there.bytes()), "put");
    check_bytes(data(behind), test.read(got.data(), got.bytes()), "got");
    BEELINE_CHECK_EQ(round, test.read_value(signals.data()));
    BEELINE_CHECK_EQ(round, test.read_value(signals.data() + 1));
    world.barrier();
  }
}

BEELINE_CASE(trigger, streams_and_rising_thresholds, 1) {
  need_reach(test, test.world());
  rise(test, by_streams);
}
BEELINE_CASE(trigger, guarded_streams_and_rising_thresholds, 1) {
  need_reach(test, test.world());
  rise(test, by_guarded_streams);
}

/// There are as many pending tags as streams, one on each; another one can be armed only when a stream is free.
BEELINE_CASE(trigger, streams_are_few, 1) {
  World& world = test.world();
  need_reach(test, world);
  constexpr std::uint32_t streams = 3;
  Triggers triggers(world, {.tags = 100, .by = TriggeredBy::stream, .streams = streams});
  const SymmetricArray<std::uint64_t> words(world, 100);
  const auto set = [&](std::uint32_t tag, std::uint64_t threshold) {
    return triggers.arm(TriggeredOperation::signal(words.data() + tag, threshold, test.ahead(1)), {tag, threshold});
  };
  for (std::uint32_t tag = 0; tag < streams; ++tag) static_cast<void>(set(tag, 1));
  check_error(Status::no_resource, {"3 tags", "TriggerOptions::streams"}, [&] { static_cast<void>(set(streams, 1)); });
  ArmedOperation last;
  for (std::uint64_t threshold = 2; threshold <= 64; ++threshold) last = set(0, threshold);
  check_error(Status::no_resource, {"64 operations of tag 0"}, [&] { static_cast<void>(set(0, 65)); });
  check_error(Status::invalid_argument, {"threshold 1 of tag 0 behind 64"}, [&] { static_cast<void>(set(0, 1)); });
  BEELINE_CHECK(Status::timeout == triggers.wait(last, Timeout{2'000'000}));
  trigger_by_blocks(test, triggers, 0, 1, 64, false);
  BEELINE_CHECK(Status::ok == triggers.wait(last));
  const ArmedOperation next = set(50, 1);  // on the free stream
  for (const std::uint32_t tag : {1u, 2u, 50u}) trigger_by_blocks(test, triggers, tag, 1, 1, false);
  BEELINE_CHECK(Status::ok == triggers.wait(next));
  while (triggers.armed() > 0) std::this_thread::yield();  // they end at their deadline at the latest
  world.barrier();
  for (const std::uint32_t tag : {0u, 1u, 2u, 50u})
    BEELINE_CHECK_EQ(tag == 0 ? 64u : 1u, test.read_value(words.data() + tag));
  world.barrier();
}

struct QuietKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report,
                                      TriggerChannel channel) const {
    BEELINE_DEVICE_CHECK_EQ(report, Status::unavailable, quiet(grid.block(), ctx, channel, 0));
  }
};

BEELINE_CASE(trigger, what_streams_refuse, 1) {
  World& world = test.world();
  for (const std::uint32_t streams : {0u, TriggerOptions::most_streams + 1})
    check_error(Status::invalid_argument, {"streams"},
                [&] { const Triggers none(world, {.by = TriggeredBy::stream, .streams = streams}); });
  Triggers triggers(world, by_streams);
  const SymmetricArray<std::uint64_t> words(world, 2);
  const auto unavailable = [](std::initializer_list<std::string_view> text, auto call) {
    check_error(Status::unavailable, text, call);
  };
  unavailable({"for atomics use TriggeredBy::engine"},
              [&] { triggers.arm(TriggeredOperation::atomic(Verb::add, words.data(), 1, test.rank()), {}); });
  unavailable({"for chains use TriggeredBy::engine"}, [&] {
    triggers.arm(TriggeredOperation::copy(words.data(), words.data() + 1, 8), {.tag = 0, .then = 1});
  });
  check_error(Status::invalid_argument, {"overlap"}, [&] {
    triggers.arm(TriggeredOperation::copy(words.data(), reinterpret_cast<std::byte*>(words.data()) + 1, 8), {});
  });
  BEELINE_CHECK_EQ(0u, triggers.armed());
  const ArmedOperation armed = triggers.arm(TriggeredOperation::copy(words.data(), words.data() + 1, 8), {.tag = 3});
  unavailable({"cannot be cancelled"}, [&] { triggers.cancel(armed); });
  test.run(test.shape(1, false), QuietKernel{}, triggers.channel(), "quiet");
  if (test.on_gpu()) {
    unavailable({"GPU memory"}, [&] { triggers.trigger(3); });
    trigger_by_blocks(test, triggers, 3, 1, 1, false);
  } else {
    triggers.trigger(3);
  }
  BEELINE_CHECK(Status::ok == triggers.wait(armed));
  world.barrier();
}

/// A cancelled operation never moves data, but later ones on its stream do; one not triggered ends with the streams.
BEELINE_CASE(trigger, cancelled_operations_of_guarded_streams, 1) {
  World& world = test.world();
  need_reach(test, world);
  const SymmetricArray<std::uint64_t> words(world, 4);
  Triggers triggers(world, by_guarded_streams);
  const auto set = [&](std::uint32_t tag, std::uint64_t threshold) {
    return triggers.arm(TriggeredOperation::signal(words.data() + tag + threshold, threshold, test.rank()),
                        {tag, threshold});
  };
  const ArmedOperation first = set(0, 1), second = set(0, 2), never = set(2, 1);
  for (const ArmedOperation cancelled : {first, never}) {
    BEELINE_CHECK(triggers.cancel(cancelled));
    BEELINE_CHECK(!triggers.cancel(cancelled));
    BEELINE_CHECK(Status::ok == triggers.wait(cancelled));
  }
  BEELINE_CHECK_EQ(1u, triggers.armed());
  trigger_by_blocks(test, triggers, 0, 1, 2, false);
  BEELINE_CHECK(Status::ok == triggers.wait(second));
  BEELINE_CHECK(!triggers.cancel(second));
  BEELINE_CHECK_EQ(0u, test.read_value(words.data() + 1));
  BEELINE_CHECK_EQ(2u, test.read_value(words.data() + 2));
  BEELINE_CHECK_EQ(0u, test.read_value(words.data() + 3));
  world.barrier();
}

/// A caller that cancels while the threshold is being reached learns what became of the operation.
BEELINE_CASE(trigger, cancelled_while_they_fire, 1) {
  World& world = test.world();
  need_reach(test, world);
  constexpr std::uint64_t rounds = 50;
  const SymmetricArray<std::uint64_t> word(world, 1);
  Triggers triggers(world, by_guarded_streams);
  std::uint64_t moved = 0;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const ArmedOperation armed = triggers.arm(TriggeredOperation::signal(word.data(), round, test.rank()), {0, round});
    test.run(test.shape(1, false), TagKernel{}, TagArguments{0, 1, false, triggers.channel()}, "a trigger");
    std::this_thread::sleep_for(std::chrono::microseconds(10 * (round % 10)));  // at some moment of the operation
    const bool is_cancelled = triggers.cancel(armed);
    BEELINE_CHECK(Status::ok == triggers.wait(armed));
    if (!is_cancelled) moved = round;
    while (triggers.armed() > 0) std::this_thread::yield();
    BEELINE_CHECK_EQ(moved, test.read_value(word.data()));
  }
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::trigger_stream_cases
