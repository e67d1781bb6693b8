// SPDX-License-Identifier: Apache-2.0
// Operations that the host arms and kernels trigger: per thread, per block and per kernel, in each order, and never
// before their data is written.
#include <cstdint>
#include <vector>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/conformance/trigger_kernels.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::trigger_cases {

namespace {

using namespace beeline;

/// Defines a case for each of the two engines: `by` in its body.
#define TRIGGER_CASE(name, least_ranks)                                                                   \
  void name(RankTest& test, TriggeredBy by);                                                              \
  BEELINE_CASE(trigger, name##_by_engine, least_ranks) { name(test, TriggeredBy::engine); }               \
  BEELINE_CASE(trigger, name##_by_device_engine, least_ranks) { name(test, TriggeredBy::device_engine); } \
  void name(RankTest& test, TriggeredBy by)

/// The value that a thread of a rank writes.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t value_of(std::uint64_t rank, std::uint64_t thread) {
  return 1000 * rank + thread + 7;
}

struct LevelArguments {
  std::uint64_t *source, *arrived;  ///< [threads of the grid]; [threads + blocks + 1]
  std::uint32_t behind, blocks;
  TriggerChannel channel;
};

/// Triggers a tag per thread, one per block and one for the kernel; they send one thread's value, one block's, or all.
struct LevelKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, LevelArguments a) const {
    const auto& block = grid.block();
    const std::uint32_t threads = grid.size(), thread = grid.thread_rank();
    a.source[thread] = value_of(ctx.rank, thread);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, trigger(Thread{}, ctx, a.channel, thread));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, trigger(block, ctx, a.channel, threads + grid.block_rank()));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, trigger(block, ctx, a.channel, threads + a.blocks));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(Thread{}, ctx, a.channel, thread));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                            wait(block, ctx, &a.arrived[threads + a.blocks], Compare::equal, a.blocks, a.behind));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                            wait(block, ctx, &a.arrived[threads + grid.block_rank()], Compare::equal, 5, a.behind));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(Thread{}, ctx, &a.arrived[thread], Compare::equal, 3, a.behind));
  }
};

TRIGGER_CASE(levels, 1) {
  World& world = test.world();
  need_reach(test, world);
  constexpr std::uint32_t blocks = 4;
  const std::uint32_t threads = blocks * test.block_threads(), per_block = test.block_threads();
  const int ahead = test.ahead(1);
  for (const std::uint32_t queues : {1u, 3u}) {
    Triggers triggers(world, {.tags = threads + blocks + 1, .queues = queues, .by = by});
    const SymmetricArray<std::uint64_t> source(world, threads), by_thread(world, threads), by_block(world, threads),
        whole(world, threads);
    const Signals arrived(world, threads + blocks + 1);
    for (std::uint32_t i = 0; i < threads; ++i)
      triggers.arm(
          TriggeredOperation::put(by_thread.data() + i, source.data() + i, 1, ahead).and_signal(arrived.data() + i, 3),
          {.tag = i});
    for (std::uint32_t i = 0; i < blocks; ++i)
      triggers.arm(
          TriggeredOperation::put(by_block.data() + i * per_block, source.data() + i * per_block, per_block, ahead)
              .and_signal(arrived.data() + threads + i, 5),
          {.tag = threads + i});
    triggers.arm(TriggeredOperation::put(whole.data(), source.data(), threads, ahead)
                     .and_signal(arrived.data() + threads + blocks, blocks),
                 {.tag = threads + blocks, .threshold = blocks});
    BEELINE_CHECK_EQ(threads + blocks + 1, triggers.armed());
    world.barrier();
    test.run(test.shape(blocks, true), LevelKernel{},
             LevelArguments{source.data(), arrived.data(), static_cast<std::uint32_t>(test.behind(1)), blocks,
                            triggers.channel()},
             "triggers of each level");
    for (std::uint32_t i = 0; i < threads; ++i) {
      const std::uint64_t expected = value_of(static_cast<std::uint64_t>(test.behind(1)), i);
      BEELINE_CHECK_EQ(expected, test.read_value(&by_thread.data()[i]));
      BEELINE_CHECK_EQ(expected, test.read_value(&by_block.data()[i]));
      BEELINE_CHECK_EQ(expected, test.read_value(&whole.data()[i]));
    }
    BEELINE_CHECK_EQ(0u, triggers.armed());
    BEELINE_CHECK_EQ(std::uint64_t{blocks}, triggers.count(threads + blocks));
    BEELINE_CHECK(triggers.refusals().empty());
    world.barrier();
  }
}

/// An operation whose tag was triggered earlier starts when it is armed; one with a threshold above the count waits.
TRIGGER_CASE(null_entries, 1) {
  World& world = test.world();
  need_reach(test, world);
  Triggers triggers(world, {.by = by});
  const SymmetricArray<std::uint64_t> words(world, 2);
  const int ahead = test.ahead(1);
  trigger_by_blocks(test, triggers, 9, 3, 2);
  BEELINE_CHECK_EQ(std::uint64_t{6}, triggers.count(9));
  const ArmedOperation at_once = triggers.arm(TriggeredOperation::signal(words.data(), 4, ahead), {9, 6});
  const ArmedOperation later = triggers.arm(TriggeredOperation::signal(words.data() + 1, 5, ahead), {9, 8});
  BEELINE_CHECK(Status::ok == triggers.wait(at_once));
  BEELINE_CHECK(Status::timeout == triggers.wait(later, Timeout{2'000'000}));
  world.barrier();
  BEELINE_CHECK_EQ(std::uint64_t{4}, test.read_value(words.data()));
  BEELINE_CHECK_EQ(std::uint64_t{0}, test.read_value(words.data() + 1));
  world.barrier();
  trigger_by_blocks(test, triggers, 9, 2, 1);
  BEELINE_CHECK(Status::ok == triggers.wait(later));
  world.barrier();
  BEELINE_CHECK_EQ(std::uint64_t{5}, test.read_value(words.data() + 1));
  world.barrier();
}

struct LateArguments {
  std::uint64_t *arrived, *seen;
  std::uint32_t behind;
  TriggerChannel channel;
};
/// Triggers operations that the host has not armed yet, and waits for them.
struct LateKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, LateArguments a) const {
    const auto& block = grid.block();
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, trigger(block, ctx, a.channel, 4));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, a.arrived, Compare::equal, 1, a.behind));
    if (block.thread_rank() == 0) *a.seen = load_value(a.arrived + 1);
  }
};

/// An operation is armed while a kernel waits for it.
TRIGGER_CASE(armed_while_a_kernel_waits, 1) {
  World& world = test.world();
  need_reach(test, world);
  Triggers triggers(world, {.by = by});
  const SymmetricArray<std::uint64_t> source(world, 1), seen(world, 1), words(world, 2);
  const SymmetricArray<DeviceReport> report(world, 1);
  const std::uint64_t value = 7;
  world.copy(source.data(), &value, sizeof value);
  world.barrier();
  launch(world, test.shape(1, true), LateKernel{}, report.data(),
         LateArguments{words.data(), seen.data(), static_cast<std::uint32_t>(test.behind(1)), triggers.channel()});
  triggers.arm(TriggeredOperation::put(words.data() + 1, source.data(), 1, test.ahead(1)).and_signal(words.data(), 1),
               {4});
  world.synchronize();
  BEELINE_CHECK_EQ(0u, test.read_value(report.data()).failures);
  BEELINE_CHECK_EQ(value, test.read_value(seen.data()));
  world.barrier();
}

/// The count of a tag persists from launch to launch; each threshold fires once, in order.
TRIGGER_CASE(rising_thresholds, 1) {
  World& world = test.world();
  need_reach(test, world);
  constexpr std::uint32_t blocks = 2, rounds = 10;
  Triggers triggers(world, {.by = by});
  const SymmetricArray<std::uint64_t> last(world, 1), sum(world, 1);
  for (std::uint32_t round = rounds; round > 0; --round) {  // armed in the wrong order
    triggers.arm(TriggeredOperation::atomic(Verb::exchange, last.data(), round, test.ahead(1)), {0, round * blocks});
    triggers.arm(TriggeredOperation::atomic(Verb::add, sum.data(), round, test.ahead(1)), {0, round * blocks});
  }
  world.barrier();
  std::uint64_t expected = 0;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    trigger_by_blocks(test, triggers, 0, blocks, 1);
    BEELINE_CHECK_EQ(2 * (rounds - round), triggers.armed());
    world.barrier();
    BEELINE_CHECK_EQ(std::uint64_t{round}, test.read_value(last.data()));
    BEELINE_CHECK_EQ(expected += round, test.read_value(sum.data()));
    world.barrier();
  }
}

/// A completion triggers the next tag: first a put, then a get of its data, then a copy of the result, and last a word.
TRIGGER_CASE(chains, 1) {
  World& world = test.world();
  need_reach(test, world);
  constexpr std::size_t count = 3000;
  const int ahead = test.ahead(1);
  for (const std::uint32_t queues : {1u, 2u}) {
    Triggers triggers(world, {.queues = queues, .by = by});
    const SymmetricArray<std::uint64_t> mine(world, count), there(world, count), back(world, count),
        copied(world, count), done(world, 1);
    const std::vector<std::byte> data = pattern(static_cast<std::uint64_t>(test.rank()) + queues, mine.bytes());
    test.write(mine.data(), data);
    triggers.arm(TriggeredOperation::put(there.data(), mine.data(), count, ahead), {.tag = 0, .then = 1});
    triggers.arm(TriggeredOperation::get(back.data(), there.data(), count, ahead), {.tag = 1, .then = 2});
    triggers.arm(TriggeredOperation::copy(copied.data(), back.data(), back.bytes()), {.tag = 2, .then = 3});
    const ArmedOperation last =
        triggers.arm(TriggeredOperation::atomic(Verb::add, done.data(), 1, test.rank()), {.tag = 3});
    world.barrier();
    trigger_by_blocks(test, triggers, 0, 1, 1);
    BEELINE_CHECK(Status::ok == triggers.wait(last));
    BEELINE_CHECK_EQ(std::uint64_t{1}, test.read_value(done.data()));
    check_bytes(data, test.read(copied.data(), copied.bytes()), "put, got and copied");
    world.barrier();
  }
}

/// A fired operation sends the data written before the trigger, never older data, as another library's events did
/// (mpich issue 7612).
TRIGGER_CASE(never_before_the_data, 1) {
  need_reach(test, test.world());
  for (const std::uint32_t words : {1u, 100u, 20'000u}) send_rounds(test, {.by = by}, words, test.on_gpu() ? 50 : 400);
}

/// 4,096 operations may be armed, each by its own tag. The next is refused until one has completed or been cancelled.
TRIGGER_CASE(a_full_table, 1) {
  World& world = test.world();
  need_reach(test, world);
  Triggers triggers(world, {.by = by});
  constexpr std::uint32_t most = 4096;
  const SymmetricArray<std::uint64_t> sum(world, 1);
  const TriggeredOperation add = TriggeredOperation::atomic(Verb::add, sum.data(), 1, test.ahead(1));
  ArmedOperation last;
  for (std::uint32_t tag = 0; tag < most; ++tag) last = triggers.arm(add, {tag});
  check_error(Status::no_resource, {"all 4096 entries"}, [&] { triggers.arm(add, {0, 2}); });
  BEELINE_CHECK(triggers.cancel(last));
  BEELINE_CHECK(!triggers.cancel(last));
  BEELINE_CHECK(Status::ok == triggers.wait(last));
  world.barrier();
  const std::vector<std::uint32_t> some = {0, 1, 2, 3, most - 1};
  for (const std::uint32_t tag : some) trigger_by_blocks(test, triggers, tag, 1, 1);
  world.barrier();
  BEELINE_CHECK_EQ(std::uint64_t{4}, test.read_value(sum.data()));
  BEELINE_CHECK_EQ(most - 5, triggers.armed());
  for (std::uint32_t i = 0; i < 5; ++i) triggers.arm(add, {0, 2});
  check_error(Status::no_resource, {"all 4096 entries"}, [&] { triggers.arm(add, {0, 2}); });
  world.barrier();
}

/// The host can trigger, too; so can CPU threads of host ranks, by the function that kernels use.
TRIGGER_CASE(by_the_host, 1) {
  World& world = test.world();
  need_reach(test, world);
  Triggers triggers(world, {.by = by});
  const SymmetricArray<std::uint64_t> sum(world, 1);
  const ArmedOperation armed =
      triggers.arm(TriggeredOperation::atomic(Verb::add, sum.data(), 3, test.ahead(1)), {2, 3});
  triggers.trigger(2, 2);
  BEELINE_CHECK(Status::timeout == triggers.wait(armed, Timeout::test()));
  if (test.on_gpu())
    triggers.trigger(2);
  else
    BEELINE_CHECK(Status::ok == trigger(Thread{}, world.host_context(), triggers.channel(), 2));
  BEELINE_CHECK(Status::ok == triggers.wait(armed));
  world.barrier();
  BEELINE_CHECK_EQ(std::uint64_t{3}, test.read_value(sum.data()));
  world.barrier();
}

TRIGGER_CASE(bad_arguments, 1) {
  World& world = test.world();
  const auto refused = [](std::initializer_list<std::string_view> words, auto call) {
    check_error(Status::invalid_argument, words, call);
  };
  refused({"0 tags"}, [&] { const Triggers none(world, {.tags = 0, .by = by}); });
  refused({"0 entries"}, [&] { const Triggers none(world, {.entries = 0, .by = by}); });
  refused({"0 queues"}, [&] { const Triggers none(world, {.queues = 0, .by = by}); });
  Triggers triggers(world, {.tags = 4, .by = by});
  const SymmetricArray<std::uint64_t> words(world, 8);
  std::uint64_t local = 0;
  const auto put = [&](std::uint64_t* to, std::size_t count, int peer) {
    return TriggeredOperation::put(to, words.data() + 4, count, peer);
  };
  refused({"no tag 4", "0 to 3"}, [&] { triggers.arm(put(words.data(), 1, 0), {.tag = 4}); });
  refused({"no tag 9"}, [&] { triggers.arm(put(words.data(), 1, 0), {.tag = 1, .then = 9}); });
  refused({"threshold of 0"}, [&] { triggers.arm(put(words.data(), 1, 0), {.tag = 1, .threshold = 0}); });
  refused({"deadline"}, [&] { triggers.arm(put(words.data(), 1, 0), {.tag = 1, .deadline_ns = -1}); });
  refused({"put to arm", "peer"}, [&] { triggers.arm(put(words.data(), 1, test.size()), {}); });
  refused({"put to arm", "symmetric"}, [&] { triggers.arm(put(&local, 1, 0), {}); });
  refused({"put to arm", "symmetric"}, [&] { triggers.arm(put(words.data(), SIZE_MAX, 0), {}); });
  refused({"put to arm", "no bytes"}, [&] { triggers.arm(put(words.data(), 0, 0), {}); });
  refused({"copy to arm", "null"}, [&] { triggers.arm(TriggeredOperation::copy(words.data(), nullptr, 8), {}); });
  refused({"signal to arm", "aligned"}, [&] {
    auto* const skewed = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(words.data()) + 4);
    triggers.arm(put(words.data(), 1, test.rank()).and_signal(skewed, 1), {});
  });
  refused({"atomic to arm", "verb"},
          [&] { triggers.arm(TriggeredOperation::atomic(Verb::compare_swap, words.data(), 1, test.rank()), {}); });
  refused({"no tag 4"}, [&] { triggers.trigger(4); });
  refused({"once at least"}, [&] { triggers.trigger(3, 0); });
  for (int peer = 0; peer < test.size(); ++peer)
    if (!test.reaches(test.rank(), peer))
      check_error(Status::unreachable, {"GPU memory"}, [&] { triggers.arm(put(words.data(), 1, peer), {}); });
  BEELINE_CHECK_EQ(0u, triggers.armed());
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

/// An operation on freed memory is refused when it fires, and so are later ones: no signal announces missing data.
TRIGGER_CASE(memory_that_is_not_there, 1) {
  World& world = test.world();
  need_reach(test, world);
  Triggers triggers(world, {.queues = 2, .by = by});
  const SymmetricArray<std::byte> bytes(world, 4096);
  const Signals word(world, 1);
  const auto* const nowhere = reinterpret_cast<const std::byte*>(std::uintptr_t{4096});
  const ArmedOperation bad = triggers.arm(
      TriggeredOperation::put(bytes.data(), nowhere, 4096, test.ahead(1)).and_signal(word.data(), 1), {.then = 2});
  const ArmedOperation chained = triggers.arm(TriggeredOperation::signal(word.data(), 2, test.ahead(1)), {2});
  const ArmedOperation good = triggers.arm(TriggeredOperation::copy(bytes.data(), bytes.data() + 64, 64), {1});
  triggers.trigger(0);
  check_error(Status::invalid_argument, {"a triggered operation", "4096", "not there"},
              [&] { static_cast<void>(triggers.wait(bad)); });
  BEELINE_CHECK_EQ(1u, triggers.refusals().size());
  check_error(Status::invalid_argument, {"a triggered operation"}, [&] { world.synchronize(); });  // reported once
  trigger_by_blocks(test, triggers, 1, 1, 1);  // the other queue continues
  BEELINE_CHECK(!triggers.cancel(good));
  BEELINE_CHECK(triggers.cancel(chained));
  world.barrier();
  BEELINE_CHECK_EQ(std::uint64_t{0}, test.read_value(word.data()));
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

TRIGGER_CASE(triggers_of_a_team, 2) {
  World& world = test.world();
  need_reach(test, world);
  const std::unique_ptr<Team> team = world.make_team(test.alternate_ranks());
  Triggers triggers(*team, {.by = by});
  const SymmetricArray<std::uint64_t> sum(*team, 1);
  const int ahead = (team->rank() + 1) % team->size();
  const ArmedOperation armed = triggers.arm(
      TriggeredOperation::atomic(Verb::add, sum.data(), 1 + static_cast<std::uint64_t>(team->rank()), ahead), {0, 2});
  test.run(*team, test.shape(2, false), TagKernel{}, TagArguments{0, 1, true, triggers.channel()},
           "triggers in a team");
  BEELINE_CHECK(Status::ok == triggers.wait(armed));
  team->barrier();
  BEELINE_CHECK_EQ(static_cast<std::uint64_t>((team->rank() + team->size() - 1) % team->size()) + 1,
                   test.read_value(sum.data()));
  team->barrier();
}

}  // namespace

}  // namespace beeline_test::trigger_cases
