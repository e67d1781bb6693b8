// SPDX-License-Identifier: Apache-2.0
/// @file
/// Messages in both directions at once, between 256 KB and 256 MB: the bytes of both directions per second; of copies
/// and staged messages also one way. Source: seed 001, figure 7; seed 000, its baselines: pageable memory, pinned
/// memory, and double buffers.

#include <algorithm>

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "beeline/host/hybrid_transfers.hpp"
#include "beeline/host/staged_channel.hpp"
#include "beeline/host/stream_operations.hpp"
#include "cases/cases.hpp"
#include "cases/put_flood.hpp"
#include "harness/group_choice.hpp"
#include "harness/timed_host.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench::two_way_cases {

namespace {

constexpr SizeRange sizes{256 << 10, 256 << 20};

/// The common part of all methods: buffers, and the measurement.
struct Ways {
  /// `both`: whether rank 1 sends, too.
  Ways(Bench& bench_in, std::uint64_t bytes, bool both_in = true)
      : bench(bench_in), both(both_in), buffers(std::make_shared<MessageBuffers>(bench, bytes)) {}
  [[nodiscard]] World& world() const { return bench.world(); }
  [[nodiscard]] int peer() const { return static_cast<int>(bench.peer()); }
  [[nodiscard]] bool sends() const { return both || bench.leads(); }
  [[nodiscard]] bool receives() const { return both || !bench.leads(); }

  Bench& bench;
  const bool both;
  std::shared_ptr<MessageBuffers> buffers;
};

constexpr const char* operation_of(bool both) { return both ? "two_way" : "one_way"; }

template <class Time>
Measurement measurement_of(const std::shared_ptr<Ways>& ways, const char* method, Settings settings, Time time) {
  const Receivers receivers = ways->both ? Receivers::both : Receivers::second;
  Measurement measurement = message_measurement(ways->bench, ways->buffers, receivers, method, time);
  measurement.operation = operation_of(ways->both);
  measurement.unit = Unit::gigabytes_per_second;  // `both`: two messages in an iteration
  measurement.settings = std::move(settings);
  return measurement;
}

/// Every block stores its share, message after message.
struct StoreBothWays {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, BlockTimes* times, std::byte* destination,
                                      const std::byte* source, std::uint64_t bytes, std::uint32_t messages,
                                      std::uint32_t peer) const {
    const Share share = share_of(bytes, grid.block_rank(), grid.blocks());
    const std::uint64_t start = machine::clock_ns();
    // Each message ends before the next begins: the next stores could overwrite these before they cross the link.
    for (std::uint32_t i = 0; i < messages; ++i)
      if (put(grid.block(), ctx, destination + share.offset, source + share.offset, share.bytes, peer) != Status::ok ||
          quiet(grid.block(), ctx) != Status::ok)
        return;
    if (grid.block().thread_rank() == 0) times[grid.block_rank()] = {start, machine::clock_ns()};
  }
};

std::vector<Measurement> prepare_stores(Bench& bench, std::uint64_t bytes) {
  bench.require_alike();
  const std::vector<GridShape> shapes = resident_shapes<StoreBothWays, BlockTimes*, std::byte*, const std::byte*,
                                                        std::uint64_t, std::uint32_t, std::uint32_t>(bench);
  const GridShape shape = shapes.back();
  const auto ways = std::make_shared<Ways>(bench, bytes);
  const auto timed = std::make_shared<TimedGrid>(bench, shape.blocks);
  return {
      measurement_of(ways, "device/peer/signal", shape.settings(bench.world().device().is_gpu()), [=](Rounds rounds) {
        return time_batches(rounds, [&] {
          return timed->run(shape, ways->bench.paired(), StoreBothWays{}, timed->times(), ways->buffers->destination(),
                            static_cast<const std::byte*>(ways->buffers->source()), ways->buffers->bytes(),
                            rounds.iterations, ways->bench.peer());
        });
      })};
}

struct PostBothWays {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::byte* destination,
                                      const std::byte* source, std::uint64_t bytes, CommandQueue queue) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t) {
      return post_put(Thread{}, ctx, destination, source, bytes, loop.peer, queue) == Status::ok &&
             quiet(Thread{}, ctx, queue) == Status::ok;
    });
  }
};

std::vector<Measurement> prepare_posts(Bench& bench, std::uint64_t bytes) {
  const auto ways = std::make_shared<Ways>(bench, bytes);
  const auto timed = std::make_shared<TimedKernel>(bench);
  const auto queues = std::make_shared<CommandQueues>(bench.world());
  const GroupChoice poster = single_thread(bench);
  return {measurement_of(ways, "proxy/copy_engine/signal", poster.settings(), [=](Rounds rounds) {
    return timed->run(poster.threads, ways->bench.paired(), rounds, PostBothWays{}, ways->buffers->destination(),
                      static_cast<const std::byte*>(ways->buffers->source()), ways->buffers->bytes(),
                      queues->channel().queue(0));
  })};
}

/// Copies that follow each other on a stream, or that the CPU waits for one by one.
Case copies(const char* method, bool each_is_awaited, bool both) {
  const auto prepare = [=](Bench& bench, std::uint64_t bytes) {
    const auto ways = std::make_shared<Ways>(bench, bytes, both);
    const auto await = [=] { ways->world().synchronize(); };
    const auto copy = [=] {
      if (!ways->sends()) return;
      put_on_stream(ways->world(), ways->buffers->destination(), ways->buffers->source(), ways->buffers->bytes(),
                    ways->peer());
      if (each_is_awaited) await();
    };
    std::vector<Measurement> all{measurement_of(
        ways, method, {}, [=](Rounds rounds) { return time_on_host(ways->bench, rounds, copy, await); })};
    all.back().most_iterations = 200;
    return all;
  };
  return {operation_of(both), method, true, prepare, sizes};
}

/// Hybrid transfers of which all are staged, by the sender alone.
Case hybrid(bool both) {
  constexpr const char* method = "host/hybrid/pipelined";
  const auto prepare = [=](Bench& bench, std::uint64_t bytes) {
    const auto ways = std::make_shared<Ways>(bench, bytes, both);
    const auto transfers = std::make_shared<HybridTransfers>(bench.world(), HybridOptions{.threshold_bytes = 1});
    const auto put = [=] {
      if (ways->sends())
        transfers->put(ways->buffers->destination(), ways->buffers->source(), ways->buffers->bytes(), ways->peer());
    };
    return std::vector<Measurement>{
        measurement_of(ways, method,
                       {{"choice", "staged"},
                        {"chunk_bytes", transfers->options().chunk_bytes},
                        {"chunks", std::uint64_t{transfers->options().chunks}}},
                       [=](Rounds rounds) { return time_on_host(ways->bench, rounds, put); })};
  };
  return {operation_of(both), method, true, prepare, sizes};
}

/// A staged variant: number and size of its buffers, and whether the program's own memory is in between.
struct Staging {
  const char *method, *buffers;
  std::uint32_t slots;
  std::uint64_t chunk_bytes;  ///< 0: the whole message
  bool is_pageable;           ///< messages are copied to and from memory that CUDA has not registered
};
/// Source: seed 000, two buffers of 2 MB.
constexpr Staging stagings[] = {{"host/staged/sequential", "pageable", 1, 0, true},
                                {"host/staged/sequential", "pinned", 1, 0, false},
                                {"host/staged/pipelined", "double", 2, 2 << 20, false},
                                {"host/staged/pipelined", "four", 4, 1 << 20, false}};

class Staged {
 public:
  Staged(Bench& bench, std::uint64_t bytes, const Staging& staging, bool both)
      : ways(bench, bytes, both),
        channel(bench.world(), staging.chunk_bytes == 0 ? bytes : staging.chunk_bytes, staging.slots),
        out(staging.is_pageable ? bytes : 0), in(out.size()) {}

  void exchange() {
    World& world = ways.world();
    const std::uint64_t bytes = ways.buffers->bytes();
    const int to = ways.sends() ? ways.peer() : -1, from = ways.receives() ? ways.peer() : -1;
    if (out.empty()) return channel.send_receive(ways.buffers->source(), to, ways.buffers->destination(), from, bytes);
    if (ways.sends()) world.copy(out.data(), ways.buffers->source(), bytes);
    channel.send_receive(out.data(), to, in.data(), from, bytes);
    if (ways.receives()) world.copy(ways.buffers->destination(), in.data(), bytes);
  }

  Ways ways;
  StagedChannel channel;
  std::vector<std::byte> out, in;
};

/// Bandwidth, and for each message how long this rank waited for the peer.
Case staged(const char* method, bool both) {
  const auto prepare = [=](Bench& bench, std::uint64_t bytes) {
    std::vector<Measurement> all;
    for (const Staging& staging : stagings) {
      if (std::string_view(staging.method) != method || (staging.chunk_bytes >= bytes && staging.slots > 1)) continue;
      const auto state = std::make_shared<Staged>(bench, bytes, staging, both);
      const std::shared_ptr<Ways> ways(state, &state->ways);
      const auto time = [=](Rounds rounds) { return time_on_host(ways->bench, rounds, [&] { state->exchange(); }); };
      const Settings settings = {{"buffers", staging.buffers},
                                 {"slots", std::uint64_t{staging.slots}},
                                 {"chunk_bytes", staging.chunk_bytes == 0 ? bytes : staging.chunk_bytes}};
      all.push_back(measurement_of(ways, method, settings, time));
      if (!both) continue;
      all.push_back(measurement_of(ways, method, settings, [=](Rounds rounds) {
        return time_batches(rounds, [&] {
          const std::uint64_t before = state->channel.waited_ns();
          static_cast<void>(time({rounds.iterations, 1, 0}));
          return static_cast<double>(state->channel.waited_ns() - before);
        });
      }));
      all.back().operation = "buffer_wait";
      all.back().unit = Unit::microseconds;
      all.back().operations_per_iteration = 1;
    }
    return all;
  };
  return {operation_of(both), method, true, prepare, sizes};
}

constexpr bool two_way = true, one_way = false;
const ListedCases cases(Command::methods, {{"two_way", "device/peer/signal", true, prepare_stores, sizes},
                                           {"two_way", "proxy/copy_engine/signal", true, prepare_posts, sizes},
                                           copies("stream/copy_engine/signal", false, two_way),
                                           copies("host/copy_engine/signal", true, two_way),
                                           hybrid(two_way),
                                           staged("host/staged/sequential", two_way),
                                           staged("host/staged/pipelined", two_way),
                                           copies("host/copy_engine/signal", true, one_way),
                                           hybrid(one_way),
                                           staged("host/staged/sequential", one_way),
                                           staged("host/staged/pipelined", one_way)});

}  // namespace

}  // namespace beeline::bench::two_way_cases
