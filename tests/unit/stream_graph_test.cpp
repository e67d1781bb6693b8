// SPDX-License-Identifier: Apache-2.0
// Put, signal and wait on streams, in CUDA graphs. Needs a GPU.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "beeline/beeline.hpp"
#include "tests/support/errors.hpp"
#include "tests/unit/graph.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

using StreamsOfTwoRanks = TwoRanks;

constexpr unsigned block_threads = 64;

/// Data that two ranks exchange by operations on streams. All numbers that change from step to step are in memory.
struct StreamExchange {
  std::uint64_t* outbox;     ///< [words]
  std::uint64_t* inbox;      ///< [words]
  std::uint64_t* signals;    ///< arrivals; credits
  std::uint64_t* sequences;  ///< for puts, arrivals, credits given, credits taken
  std::uint64_t* state;      ///< steps taken, wrong words
  std::uint64_t words;
};

struct FillOutbox {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, StreamExchange exchange) const {
    for (std::size_t i = grid.thread_rank(); i < exchange.words; i += grid.size())
      exchange.outbox[i] = word_of(exchange.state[0] + 1, i, ctx.rank);
  }
};

struct CheckInbox {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, StreamExchange exchange) const {
    const std::uint64_t step = exchange.state[0] + 1;
    for (std::size_t i = grid.thread_rank(); i < exchange.words; i += grid.size())
      if (exchange.inbox[i] != word_of(step, i, ctx.size - 1 - ctx.rank)) exchange.state[1] = step;
    grid.block().sync();
    if (grid.thread_rank() == 0) exchange.state[0] = step;
  }
};

/// Runs put, signal and wait on streams in two graphs in turn; one puts by a kernel, the other also by a copy. The same
/// steps run outside of the graphs in between: each continues where the last one ended.
void repeat_operations(World& world, std::uint64_t runs) {
  constexpr std::uint64_t most = 300;
  const auto peer = static_cast<std::uint32_t>(1 - world.rank());
  const SymmetricArray<std::uint64_t> memory(world, 2 * most), signals(world, 2), sequences(world, 4), state(world, 2);
  const auto with_words = [&](std::uint64_t count) {
    return StreamExchange{memory.data(), memory.data() + most, signals.data(), sequences.data(), state.data(), count};
  };
  Stream& stream = world.stream();
  const int to = static_cast<int>(peer);
  const auto step = [&](bool by_kernel) {
    const StreamExchange exchange = with_words(by_kernel ? most : most / 2);
    std::uint64_t *const arrived = exchange.signals, *const credits = exchange.signals + 1;
    const std::size_t bytes = exchange.words * sizeof(std::uint64_t);
    launch(world, {.threads = block_threads}, FillOutbox{}, exchange);
    wait_on_stream(world, {.signal = credits, .sequence = exchange.sequences + 3, .peer = peer});
    const SignalCall announced{.signal = arrived, .sequence = exchange.sequences};
    if (by_kernel) {
      put_signal_on_stream(world, exchange.inbox, exchange.outbox, bytes, to, announced);
    } else {
      put_on_stream(world, exchange.inbox, exchange.outbox, bytes, to);
      signal_on_stream(world, to, announced);
    }
    wait_on_stream(world, {.signal = arrived, .sequence = exchange.sequences + 1, .peer = peer});
    launch(world, {.threads = block_threads}, CheckInbox{}, exchange);
    signal_on_stream(world, to, {.signal = credits, .sequence = exchange.sequences + 2});
  };
  signal_on_stream(world, to, {.signal = signals.data() + 1, .sequence = sequences.data() + 2});  // the first credit
  world.synchronize();
  const Graph one(world, stream, [&] { step(true); });
  const Graph two(world, stream, [&] { step(false), step(true); });
  world.barrier();
  std::uint64_t steps = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    (i % 2 == 0 ? one : two).run(stream);
    steps += 1 + i % 2;
    if (i % 3 == 0) step(i % 6 == 0), ++steps;
    if (i % 100 == 0) world.synchronize(stream);
  }
  wait_on_stream(world, {.signal = signals.data() + 1, .value = steps + 1, .peer = peer});  // the peer's last credit
  world.synchronize(stream);
  std::uint64_t found[2] = {};
  world.copy(found, state.data(), sizeof found);
  BEELINE_CHECK_EQ(steps, found[0]);
  BEELINE_CHECK_EQ(std::uint64_t{0}, found[1]);
  world.copy(found, signals.data(), sizeof found);
  BEELINE_CHECK_EQ(steps, found[0]);
  BEELINE_CHECK_EQ(steps + 1, found[1]);
  world.barrier();
}

TEST_P(StreamsOfTwoRanks, RepeatOperations) {
  run([](World& world) { repeat_operations(world, 10'000); });
}

/// An engine carries operations to other nodes. A graph then has no signals of fixed values, and nothing staged.
TEST_P(StreamsOfTwoRanks, RepeatOperationsAcrossNodes) {
  constexpr int nodes = 2;
  run([](World& world) { repeat_operations(world, 600); }, nodes);
}

TEST_P(StreamsOfTwoRanks, CaptureWhatRepeatsAcrossNodes) {
  constexpr int nodes = 2;
  run(
      [](World& world) {
        const int peer = 1 - world.rank();
        const SymmetricArray<std::uint64_t> words(world, 64);
        std::uint64_t* const there = world.at(words.data(), peer);
        Stream& stream = world.stream();
        const auto refused = [](const std::function<void()>& call) {
          check_error(Status::unavailable, {"cannot be captured in a graph"}, call);
        };
        const Graph graph(world, stream, [&] {
          refused([&] { stream.write_signal(there, 1); });
          refused([&] { stream.fill(there, 1, 8); });
          refused([&] { stream.copy(there, there + 8, 8); });
          stream.copy(words.data() + 8, there, 8);
        });
        const std::uint64_t mine = 40 + static_cast<std::uint64_t>(world.rank());
        world.copy(words.data(), &mine, sizeof mine);
        world.barrier();
        graph.run(stream);
        world.synchronize(stream);
        std::uint64_t got = 0;
        world.copy(&got, words.data() + 8, sizeof got);
        BEELINE_CHECK_EQ(40 + static_cast<std::uint64_t>(peer), got);
        world.barrier();
      },
      nodes);
}

/// A wait in a graph has a deadline, and its error says what it waited for.
TEST_P(StreamsOfTwoRanks, GiveUpWaitsInGraphs) {
  if (const std::string why = missing_gpus(GetParam()); !why.empty()) GTEST_SKIP() << why;
  Config config = test_config(GetParam() == 1 ? "cuda:0" : "cuda:0,1");
  config.deadline_ns = 500'000'000;
  const auto body = [](World& world) {
    const SymmetricArray<std::uint64_t> words(world, 2);
    const Graph graph(world, world.stream(), [&] {
      wait_on_stream(world, {.signal = words.data(), .value = 7, .sequence = words.data() + 1, .peer = 1});
    });
    world.barrier();
    if (world.rank() == 0) graph.run(world.stream());
    if (world.rank() == 0)
      check_error(Status::deadline, {"wait on rank 1", "expected >= 7, observed 0"}, [&] { world.synchronize(); });
  };
  const auto outcomes = run_ranks(WorldKind::threads, 2, body, config, 60);
  EXPECT_EQ("", outcomes[0].failure);
}

INSTANTIATE_TEST_SUITE_P(Gpus, StreamsOfTwoRanks, ::testing::Values(1, 2));

}  // namespace

}  // namespace beeline_test
