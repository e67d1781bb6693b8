// SPDX-License-Identifier: Apache-2.0
// CUDA graphs of launches and copies, and streams that were made outside the library. All but one case need a GPU.
#include "tests/unit/graph.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/host/collectives.hpp"
#include "beeline/host/messages.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

constexpr unsigned blocks = 4, threads = 64;
constexpr std::size_t words = 300;

/// Data that two ranks exchange. All changing numbers are in memory: a graph continues where the last run ended.
struct Exchange {
  std::uint64_t* outbox;  ///< [words]
  std::uint64_t* inbox;   ///< [2, words] of even and of odd steps
  std::uint64_t* signal;
  std::uint64_t* state;  ///< [steps taken, wrong words]
};

/// One step: the grid fills the outbox; its first block sends it to the other rank and waits for the other rank's data;
/// the grid checks the data.
struct Step {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Exchange exchange) const {
    const std::uint64_t step = exchange.state[0] + 1;
    const std::uint32_t peer = ctx.size - 1 - ctx.rank;
    std::uint64_t* const inbox = exchange.inbox + step % 2 * words;
    for (std::size_t i = grid.thread_rank(); i < words; i += grid.size())
      exchange.outbox[i] = word_of(step, i, ctx.rank);
    if (grid.sync(ctx) != Status::ok) return;
    if (grid.block_rank() == 0) {
      const auto& block = grid.block();
      if (put_signal(block, ctx, inbox, exchange.outbox, words, exchange.signal, step, peer) != Status::ok) return;
      if (wait(block, ctx, exchange.signal, Compare::greater_equal, step) != Status::ok) return;
      if (block.thread_rank() == 0) exchange.state[0] = step;
    }
    if (grid.sync(ctx) != Status::ok) return;
    for (std::size_t i = grid.thread_rank(); i < words; i += grid.size())
      if (inbox[i] != word_of(step, i, peer)) exchange.state[1] = step;
  }
};

/// Adds a word that the graph copied to a sum.
struct Add {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, std::uint64_t* sum,
                                      const std::uint64_t* copied) const {
    if (grid.thread_rank() == 0) *sum += copied[words - 1];
  }
};

Exchange make_exchange(World& world) {
  return {static_cast<std::uint64_t*>(world.allocate(words * sizeof(std::uint64_t))),
          static_cast<std::uint64_t*>(world.allocate(2 * words * sizeof(std::uint64_t))),
          static_cast<std::uint64_t*>(world.allocate(sizeof(std::uint64_t))),
          static_cast<std::uint64_t*>(world.allocate(2 * sizeof(std::uint64_t)))};
}

void take_step(World& world, Stream& stream, const Exchange& exchange) {
  launch(world, {.blocks = blocks, .threads = threads, .waits = true, .stream = &stream}, Step{}, exchange);
}

void check_steps(World& world, const Exchange& exchange, std::uint64_t expected) {
  std::uint64_t state[2] = {};
  world.copy(state, exchange.state, sizeof state);
  BEELINE_CHECK_EQ(expected, state[0]);
  BEELINE_CHECK_EQ(std::uint64_t{0}, state[1]);
}

/// A graph of three launches and a copy runs 10,000 times, with steps outside the graph in between.
TEST_P(TwoRanks, RepeatLaunchesAndCopiesBesideOthers) {
  run([](World& world) {
    constexpr int runs = 10'000;
    Stream& stream = world.stream();
    const Exchange exchange = make_exchange(world);
    auto* copied = static_cast<std::uint64_t*>(world.allocate(words * sizeof(std::uint64_t)));
    auto* sum = static_cast<std::uint64_t*>(world.allocate(sizeof(std::uint64_t)));
    const Graph graph(world, stream, [&] {
      take_step(world, stream, exchange);
      stream.copy(copied, exchange.outbox, words * sizeof(std::uint64_t));
      take_step(world, stream, exchange);
      launch(world, {.threads = 32, .stream = &stream}, Add{}, sum, copied);
    });
    BEELINE_CHECK_EQ(std::size_t{4}, graph.nodes());
    world.barrier();  // from here on kernels wait for the other rank's kernels
    std::uint64_t steps = 0, expected_sum = 0;
    for (int i = 0; i < runs; ++i) {
      graph.run(stream);
      expected_sum += word_of(steps + 1, words - 1, static_cast<std::uint64_t>(world.rank()));
      steps += 2;
      if (i % 3 == 0) {
        take_step(world, stream, exchange);
        ++steps;
      }
      if (i % 100 == 0) world.synchronize(stream);  // a full queue would hold back the other rank's thread
    }
    world.synchronize(stream);
    check_steps(world, exchange, steps);
    std::uint64_t observed_sum = 0;
    world.copy(&observed_sum, sum, sizeof observed_sum);
    BEELINE_CHECK_EQ(expected_sum, observed_sum);
    world.barrier();
  });
}

/// Two graphs of one stream run in turn, then at the same time on two streams: each has its own grid barrier.
TEST_P(TwoRanks, RunTwoGraphsInTurnAndBesideEachOther) {
  run([](World& world) {
    constexpr int runs = 2'000;
    const std::unique_ptr<Stream> other = world.make_stream();
    const Exchange first = make_exchange(world), second = make_exchange(world);
    const Graph one(world, world.stream(), [&] { take_step(world, world.stream(), first); });
    const Graph two(world, world.stream(), [&] {
      take_step(world, world.stream(), second);
      take_step(world, world.stream(), second);
    });
    world.barrier();
    for (int i = 0; i < runs; ++i) {
      one.run(world.stream());
      two.run(world.stream());
      if (i % 100 == 0) world.synchronize();
    }
    world.synchronize();
    for (int i = 0; i < runs; ++i) {
      one.run(world.stream());
      two.run(*other);
      if (i % 100 != 0) continue;
      world.synchronize();
      world.synchronize(*other);
    }
    world.synchronize();
    world.synchronize(*other);
    check_steps(world, first, 2 * runs);
    check_steps(world, second, 4 * runs);
    world.barrier();
  });
}

/// Runs a graph of two steps on the default stream `runs` times, and after every third run a step outside of it.
/// Returns the number of steps.
int repeat(World& world, const std::function<void()>& step, int runs) {
  Stream& stream = world.stream();
  const Graph graph(world, stream, [&] { step(), step(); });
  world.barrier();
  int steps = 0;
  for (int i = 0; i < runs; ++i) {
    graph.run(stream);
    steps += 2;
    if (i % 3 == 0) step(), ++steps;
    if (i % 100 == 0) world.synchronize(stream);
  }
  world.synchronize(stream);
  return steps;
}

/// Computes the next input of an all-reduce from its result.
struct Mix {
  static constexpr std::int64_t modulus = 1'000'003;
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::int64_t* input, const std::int64_t* sum,
                                      std::uint64_t count) const {
    for (std::uint64_t i = grid.thread_rank(); i < count; i += grid.size())
      input[i] = sum[i] % modulus + static_cast<std::int64_t>(i + ctx.rank);
  }
};

/// Input and result of an all-reduce, zero at first.
struct Vectors {
  std::int64_t* input;
  std::int64_t* sum;
  std::size_t count;
};

/// All-reduces in a graph, each of the previous result, with others outside the graph in between: each continues with
/// the round after the last one.
void repeat_all_reduces(World& world, Collectives& collectives, const Vectors& vectors, const CollectiveCall& how,
                        int runs) {
  const auto [input, sum, count] = vectors;
  const auto step = [&] {
    collectives.allreduce_on_stream(sum, input, count, ElementType::int64, Reduction::sum, how);
    launch(world, {.blocks = 8}, Mix{}, input, static_cast<const std::int64_t*>(sum), std::uint64_t{count});
  };
  const int steps = repeat(world, step, runs);
  std::vector<std::int64_t> observed(count);
  world.copy(observed.data(), sum, count * sizeof(std::int64_t));
  for (std::size_t i = 0; i < count; i += 99) {
    std::int64_t expected = 0, inputs[2] = {0, 0};
    for (int each = 0; each < steps; ++each) {
      expected = inputs[0] + inputs[1];
      for (int rank = 0; rank < 2; ++rank) inputs[rank] = expected % Mix::modulus + static_cast<std::int64_t>(i) + rank;
    }
    BEELINE_CHECK_EQ(expected, observed[i]);
  }
  world.barrier();
}

TEST_P(TwoRanks, RepeatAllReduces) {
  run([](World& world) {
    Collectives collectives(world);
    for (const std::size_t count : {std::size_t{100}, std::size_t{200'000}}) {
      auto* input = static_cast<std::int64_t*>(world.allocate(count * sizeof(std::int64_t)));
      auto* sum = static_cast<std::int64_t*>(world.allocate(count * sizeof(std::int64_t)));
      repeat_all_reduces(world, collectives, {input, sum, count}, {.blocks = blocks}, 500);
    }
  });
}

/// Zeroed memory on this rank's GPU that is in no heap.
auto other_memory(const World& world, std::size_t words) {
  std::int64_t* data = nullptr;
  must(cudaSetDevice(world.device().index));
  must(cudaMalloc(reinterpret_cast<void**>(&data), words * sizeof *data));
  must(cudaMemset(data, 0, words * sizeof *data));
  must(cudaDeviceSynchronize());
  return std::shared_ptr<std::int64_t>(data, [](std::int64_t* held) { static_cast<void>(cudaFree(held)); });
}

/// By copy engines, in chunks, of vectors at different offsets on the two ranks, in the heap and outside of it.
TEST_P(TwoRanks, RepeatAllReducesByEngines) {
  run([](World& world) {
    constexpr std::size_t count = 200'001, room = 2 * count + 8;
    Collectives collectives(world, {.engine_bytes = std::size_t{1} << 20});
    const auto outside = other_memory(world, room);
    auto* const heap = static_cast<std::int64_t*>(world.allocate(room * sizeof(std::int64_t)));
    for (std::int64_t* memory : {outside.get(), heap}) {
      std::int64_t* const input = memory + 2 * world.rank();
      repeat_all_reduces(world, collectives, {input, input + count + world.rank(), count},
                         {.algorithm = Algorithm::copy_engine}, 30);
    }
  });
}

/// The algorithm that `automatic` chooses for large vectors not declared symmetric, first called in a capture.
TEST(TwoGpus, CaptureLargeAllReducesOfAnyVectors) {
  if (const std::string why = missing_gpus(2); !why.empty()) GTEST_SKIP() << why;
  Config config = test_config("cuda:0,cuda:1");
  config.heap_bytes = std::size_t{512} << 20;
  const auto body = [](World& world) {
    constexpr std::size_t count = std::size_t{28} << 20;  // 224 MB
    Collectives collectives(world);
    const auto outside = other_memory(world, 2 * count + 8);
    std::int64_t* const input = outside.get() + 2 * world.rank();
    repeat_all_reduces(world, collectives, {input, input + count + world.rank(), count}, {}, 3);
    BEELINE_CHECK(collectives.last_transfer() == Transfer::staged);
  };
  expect_all_passed(run_ranks(WorldKind::threads, 2, body, config, 100));
}

/// Calls of one channel take turns, so they count once in the residency ledger: graphs from several streams and calls
/// outside of them, any three of which together would need more than the device.
TEST_P(TwoRanks, CaptureCallsOfOneChannelFromSeveralStreams) {
  run([](World& world) {
    constexpr std::size_t count = 100'000;
    constexpr int runs = 20;
    Stream& stream = world.stream();
    const std::unique_ptr<Stream> streams[] = {world.make_stream(), world.make_stream()};
    Collectives collectives(world);
    auto* vectors = static_cast<std::int32_t*>(world.allocate(4 * count * sizeof(std::int32_t)));
    const std::vector<std::int32_t> ones(count, 1);
    world.copy(vectors, ones.data(), count * sizeof ones[0]);
    // Each call sums up the previous call's result.
    const auto call = [&](Stream& on, std::size_t from, std::size_t to) {
      collectives.allreduce_on_stream(
          vectors + to * count, vectors + from * count, count, ElementType::int32, Reduction::sum,
          {.stream = &on, .algorithm = Algorithm::two_shot, .blocks = collectives.channel().sessions});
    };
    const Graph one(world, *streams[0], [&] { call(*streams[0], 0, 1); });
    const Graph two(world, *streams[1], [&] { call(*streams[1], 1, 2); });
    world.barrier();
    for (int i = 0; i < runs; ++i) {
      one.run(stream);
      two.run(stream);
      call(stream, 2, 3);
    }
    world.synchronize();
    std::vector<std::int32_t> observed(count);
    world.copy(observed.data(), vectors + 3 * count, count * sizeof observed[0]);
    BEELINE_CHECK(observed == std::vector<std::int32_t>(count, 8));
    world.barrier();
  });
}

/// Computes the words to send next from the words received.
struct Turn {
  BEELINE_HOST_DEVICE static std::uint64_t next(std::uint64_t received, std::uint64_t rank, std::uint64_t index) {
    return received % 1'000'003 * 3 + rank + index;
  }
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* sent,
                                      const std::uint64_t* received, std::uint64_t count) const {
    for (std::uint64_t i = grid.thread_rank(); i < count; i += grid.size()) sent[i] = next(received[i], ctx.rank, i);
  }
};

/// Messages in a graph, eager and by rendezvous, with others outside the graph in between: each continues with the
/// number after the last one.
TEST_P(TwoRanks, RepeatMessages) {
  run([](World& world) {
    constexpr int runs = 500;
    Messages messages(world);
    const int peer = 1 - world.rank();
    for (const std::size_t count : {std::size_t{100}, std::size_t{50'000}}) {
      auto* sent = static_cast<std::uint64_t*>(world.allocate(count * sizeof(std::uint64_t)));
      auto* received = static_cast<std::uint64_t*>(world.allocate(count * sizeof(std::uint64_t)));
      const auto turn = [&] {
        launch(world, {.blocks = 8}, Turn{}, sent, static_cast<const std::uint64_t*>(received), std::uint64_t{count});
      };
      const auto step = [&] {
        messages.send_receive_on_stream({sent, count, peer}, {received, count, peer}, ElementType::int64,
                                        {.blocks = 3});
        turn();
        for (const bool sends : {world.rank() == 0, world.rank() != 0})
          if (sends)
            messages.send_on_stream(sent, count, ElementType::int64, peer, {.blocks = 2});
          else
            messages.receive_on_stream(received, count, ElementType::int64, peer, {.blocks = 2});
        turn();
      };
      const int steps = repeat(world, step, runs);
      std::vector<std::uint64_t> observed(count);
      world.copy(observed.data(), sent, count * sizeof(std::uint64_t));
      for (std::size_t i = 0; i < count; i += 99) {
        std::uint64_t expected[2] = {0, 0};
        for (int each = 0; each < 2 * steps; ++each) {
          const std::uint64_t before[2] = {expected[0], expected[1]};
          for (std::uint64_t rank = 0; rank < 2; ++rank) expected[rank] = Turn::next(before[1 - rank], rank, i);
        }
        BEELINE_CHECK_EQ(expected[world.rank()], observed[i]);
      }
      world.barrier();
    }
  });
}

/// One rank captures in the strictest mode while the other waits for kernels, copies, and makes streams.
TEST_P(TwoRanks, CaptureWhileOthersWork) {
  run([](World& world) {
    const Exchange exchange = make_exchange(world);
    std::vector<std::uint64_t> here(words, 7), back(words);
    if (world.rank() == 0) {
      const Graph graph(world, world.stream(), [&] {
        world.barrier();
        take_step(world, world.stream(), exchange);
        world.barrier();
      });
      world.barrier();
      graph.run(world.stream());
    } else {
      world.barrier();
      for (int i = 0; i < 100; ++i) {
        const std::unique_ptr<Stream> stream = world.make_stream();
        stream->copy(exchange.inbox, here.data(), words * sizeof(std::uint64_t));
        world.synchronize(*stream);
        world.copy(back.data(), exchange.inbox, words * sizeof(std::uint64_t));
        BEELINE_CHECK(back == here);
      }
      world.barrier();
      world.barrier();
      take_step(world, world.stream(), exchange);
    }
    world.synchronize();
    check_steps(world, exchange, 1);
    world.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Gpus, TwoRanks, ::testing::Values(1, 2));

/// One rank on a GPU.
class OneRank : public ::testing::Test {
 protected:
  static void run(const std::function<void(World&)>& body) {
    if (const std::string why = missing_gpus(1); !why.empty()) GTEST_SKIP() << why;
    expect_all_passed(run_ranks(WorldKind::threads, 1, body, test_config("cuda:0"), 60));
  }
};

using Graphs = OneRank;
using AdoptedStream = OneRank;

/// An operation that a graph cannot repeat is refused by its name; the capture continues.
TEST_F(Graphs, RefuseWhatCannotBeCaptured) {
  run([](World& world) {
    const std::unique_ptr<Stream> stream = world.make_stream();
    const Signals signals(world, 2);
    std::uint64_t* const signal = signals.data();
    const std::unique_ptr<Event> outside = world.stream().make_event(), inside = stream->make_event();
    world.stream().record(*outside);
    const auto refused = [](const std::function<void()>& call) {
      check_error(Status::unavailable, {"cannot be captured in a graph"}, call);
    };
    const Graph graph(world, *stream, [&] {
      BEELINE_CHECK(stream->capture() != 0);
      stream->fill(signal, 1, sizeof *signal);
      refused([&] { signal_on_stream(world, 0, {.signal = signal, .stream = stream.get()}); });
      refused([&] { put_signal_on_stream(world, nullptr, nullptr, 0, 0, {.signal = signal, .stream = stream.get()}); });
      refused([&] { wait_on_stream(world, {.signal = signal, .stream = stream.get()}); });
      refused([&] { world.synchronize(*stream); });
      refused([&] { stream->wait_event(*outside); });
      stream->record(*inside);
      stream->wait_event(*inside);
      refused([&] { static_cast<void>(inside->done()); });
      refused([&] { world.synchronize(*inside); });
      BEELINE_CHECK(!stream->drained());
      stream->copy(signal + 1, signal, sizeof *signal);
    });
    BEELINE_CHECK(stream->capture() == 0);
    BEELINE_CHECK_EQ(std::size_t{2}, graph.nodes());
    graph.run(*stream);
    world.synchronize(*stream);
    std::uint64_t observed = 0;
    world.copy(&observed, signal + 1, sizeof observed);
    BEELINE_CHECK_EQ(std::uint64_t{0x0101010101010101}, observed);
    const Graph of_default(world, world.stream(), [&] { refused([&] { world.free(signal); }); });
    stream->record(*inside);  // outside a capture again
    world.synchronize(*inside);
  });
}

struct WaitForNothing {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx) const {
    static_cast<void>(grid.sync(ctx));
  }
};

/// A waiting grid in a graph holds its share of the device until the graph is destroyed, even if its stream is gone.
TEST_F(Graphs, HoldTheirShareOfTheDevice) {
  run([](World& world) {
    const unsigned all = resident_blocks<WaitForNothing>(world, threads);
    const auto launch_most = [&world, all](Stream& on) {
      launch(world, {.blocks = all / 10 * 6, .threads = threads, .waits = true, .stream = &on}, WaitForNothing{});
    };
    std::unique_ptr<Stream> captured = world.make_stream();
    auto graph = std::make_unique<Graph>(world, *captured, [&] { launch_most(*captured); });
    captured.reset();
    check_error(Status::no_resource, {"WaitForNothing", "in a graph", "holds"}, [&] { launch_most(world.stream()); });
    graph->run(world.stream());
    world.synchronize();
    graph.reset();
    const Stopwatch stopwatch;  // CUDA reports the end of a graph with some delay
    for (bool launched = false; !launched;) {
      try {
        launch_most(world.stream());
        launched = true;
      } catch (const Error&) {
        if (stopwatch.seconds() > 10) throw;
        std::this_thread::yield();
      }
    }
    world.synchronize();
  });
}

void use_adopted(World& world, Stream& stream) {
  std::vector<std::uint64_t> there(words, 5);
  auto* data = static_cast<std::uint64_t*>(world.allocate(2 * words * sizeof(std::uint64_t)));
  stream.fill(data, 0, 2 * words * sizeof(std::uint64_t));
  stream.copy(data + words, there.data(), words * sizeof(std::uint64_t));
  for (int i = 0; i < 3; ++i)
    launch(world, {.threads = 32, .stream = &stream}, Add{}, data, static_cast<const std::uint64_t*>(data + words));
  launch(world, {.blocks = blocks, .threads = threads, .waits = true, .stream = &stream}, WaitForNothing{});
  const std::unique_ptr<Event> event = stream.make_event();
  stream.record(*event);
  world.synchronize(*event);
  world.synchronize(stream);
  std::uint64_t sum = 0;
  world.copy(&sum, data, sizeof sum);
  BEELINE_CHECK_EQ(std::uint64_t{15}, sum);
  world.free(data);
}

TEST_F(AdoptedStream, WorksAndStaysItsOwners) {
  run([](World& world) {
    must(cudaSetDevice(world.device().index));
    for (const unsigned flags : {cudaStreamDefault, cudaStreamNonBlocking}) {
      cudaStream_t theirs = nullptr;
      must(cudaStreamCreateWithFlags(&theirs, flags));
      for (int i = 0; i < 2; ++i) {  // adopted twice, one after the other
        const std::unique_ptr<Stream> stream = world.adopt_stream(theirs);
        BEELINE_CHECK(stream->native() == theirs);
        use_adopted(world, *stream);
        const Graph graph(world, *stream, [&] {
          launch(world, {.blocks = blocks, .threads = threads, .waits = true, .stream = stream.get()},
                 WaitForNothing{});
        });
        graph.run(*stream);
        world.synchronize(*stream);
      }
      must(cudaStreamSynchronize(theirs));
      must(cudaStreamDestroy(theirs));
    }
    const std::unique_ptr<Stream> legacy = world.adopt_stream(nullptr);
    use_adopted(world, *legacy);
  });
}

TEST_F(AdoptedStream, MayBeInACapture) {
  run([](World& world) {
    must(cudaSetDevice(world.device().index));
    cudaStream_t theirs = nullptr;
    must(cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking));
    {
      const std::unique_ptr<Stream> before = world.adopt_stream(theirs);
      std::unique_ptr<Stream> meanwhile;
      const Graph graph(world, *before, [&] {
        meanwhile = world.adopt_stream(theirs);
        launch(world, {.blocks = blocks, .threads = threads, .waits = true, .stream = meanwhile.get()},
               WaitForNothing{});
      });
      graph.run(*before);
      world.synchronize(*before);
    }
    must(cudaStreamDestroy(theirs));
  });
}

TEST_F(AdoptedStream, IsOfTheRanksGpu) {
  if (const std::string why = missing_gpus(2); !why.empty()) GTEST_SKIP() << why;
  run([](World& world) {
    cudaStream_t theirs = nullptr;
    must(cudaSetDevice(1));
    must(cudaStreamCreate(&theirs));
    check_error(Status::invalid_argument, {"a stream of GPU 1 for a rank on GPU 0"},
                [&] { static_cast<void>(world.adopt_stream(theirs)); });
    must(cudaStreamDestroy(theirs));
  });
}

TEST(HostRank, HasNoStreamToAdopt) {
  expect_all_passed(run_ranks(
      WorldKind::threads, 1,
      [](World& world) {
        check_error(Status::unavailable, {"rank 0 has no GPU"},
                    [&] { static_cast<void>(world.adopt_stream(nullptr)); });
        BEELINE_CHECK(world.stream().capture() == 0);
      },
      test_config("cpu"), 60));
}

}  // namespace

}  // namespace beeline_test
