// SPDX-License-Identifier: Apache-2.0
/// @file
/// Many threads store to the peer's memory, or load from it, 8 bytes at a time: bandwidth against the number of
/// threads, and against the distance of the peer's elements. Source: seed 000 sections 6.6.2 and 6.6.3.

#include "beeline/device/put_get.hpp"
#include "cases/cases.hpp"
#include "harness/device_count.hpp"
#include "harness/random.hpp"
#include "harness/thread_sweep.hpp"

namespace beeline::bench::remote_access_cases {

namespace {

struct Access {
  BlockTimes* times;
  std::uint64_t* remote;  ///< [count, stride] on the peer
  std::uint64_t* local;   ///< [count]
  std::uint64_t count, stride;
  std::uint32_t threads, passes, peer;
};

template <bool stores>
struct RemoteAccess {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Access access) const {
    const auto& block = grid.block();
    if (grid.sync(ctx) != Status::ok) return;
    const std::uint64_t start = machine::clock_ns();
    if (grid.thread_rank() < access.threads) {
      std::uint64_t* there = ctx.at(access.remote, access.peer);
      for (std::uint32_t i = 0; i < access.passes; ++i) {
        pass(access, there, grid.thread_rank());
        if constexpr (!stores) fence();  // cached data of the last pass is stale
      }
      fence();
    }
    block.sync();
    if (block.thread_rank() == 0) access.times[grid.block_rank()] = {start, machine::clock_ns()};
  }

 private:
  static BEELINE_HOST_DEVICE void pass(const Access& access, std::uint64_t* there, std::uint64_t thread) {
    const std::uint64_t step = access.threads;
    const std::uint64_t from_stride = stores ? 1 : access.stride, to_stride = stores ? access.stride : 1;
    const std::uint64_t* from = stores ? access.local : there;
    std::uint64_t* to = stores ? there : access.local;
    std::uint64_t i = thread;
    BEELINE_NO_UNROLL
    for (; i + 3 * step < access.count; i += 4 * step) {
      const std::uint64_t a = from[i * from_stride], b = from[(i + step) * from_stride],
                          c = from[(i + 2 * step) * from_stride], d = from[(i + 3 * step) * from_stride];
      to[i * to_stride] = a, to[(i + step) * to_stride] = b;
      to[(i + 2 * step) * to_stride] = c, to[(i + 3 * step) * to_stride] = d;
    }
    for (; i < access.count; i += step) to[i * to_stride] = from[i * from_stride];
  }
};

/// Words at `words[0]`, `words[stride]`, ... of this rank.
struct WordRange {
  std::uint64_t* words;
  std::uint64_t count, stride;
};

struct FillWords {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, WordRange range, std::uint64_t seed) const {
    for (std::uint64_t i = grid.thread_rank(); i < range.count; i += grid.size())
      range.words[i * range.stride] = random_word(seed, i);
  }
};

struct CountWrong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, WordRange range, std::uint64_t seed,
                                      std::uint64_t* wrong) const {
    std::uint64_t mine = 0;
    for (std::uint64_t i = grid.thread_rank(); i < range.count; i += grid.size())
      mine += range.words[i * range.stride] != random_word(seed, i) ? 1 : 0;
    add_to(wrong, mine);
  }
};

LaunchOptions whole_device(const World& world) {
  const Device& device = world.device();
  return {.blocks = device.is_gpu() ? 4 * static_cast<unsigned>(device.multiprocessors) : 1, .threads = 256};
}

/// Random words in a rank's memory, written and checked by the rank's own device.
class WordPattern {
 public:
  /// Collective.
  explicit WordPattern(Bench& bench) : bench_(bench), wrong_(bench) {}

  /// Makes word `i` the `i`-th random word of `seed`.
  void fill(const WordRange& range, std::uint64_t seed) {
    World& world = bench_.world();
    launch(world, whole_device(world), FillWords{}, range, seed);
    world.synchronize();
  }
  /// Whether the range still holds the random words of `seed`.
  [[nodiscard]] bool holds(const WordRange& range, std::uint64_t seed) {
    World& world = bench_.world();
    const auto count = [&](std::uint64_t* wrong) {
      launch(world, whole_device(world), CountWrong{}, range, seed, wrong);
    };
    return wrong_.after(count) == 0;
  }

 private:
  Bench& bench_;
  DeviceCount wrong_;
};

/// The arrays of one measurement.
template <bool stores>
struct State {
  State(Bench& bench_in, const ThreadShape& shape_in, std::uint64_t count_in, std::uint64_t stride_in)
      : bench(bench_in), shape(shape_in), count(count_in), stride(stride_in), remote(bench.world(), count * stride),
        local(bench.world(), count), timed(bench, shape.grid.blocks), pattern(bench) {}

  std::vector<double> time(Rounds rounds) {
    const Access access{timed.times(), remote.data(), local.data(),      count,
                        stride,        shape.active,  rounds.iterations, bench.peer()};
    return time_batches(rounds, [&] { return timed.run(shape.grid, bench.leads(), RemoteAccess<stores>{}, access); });
  }

  bool verify(std::uint64_t seed) {
    const WordRange far{remote.data(), count, stride}, near{local.data(), count, 1};
    const bool peer = bench.world().rank() == 1;
    // The two ends start with different words: the transfer replaces the words at the destination.
    if (bench.leads()) pattern.fill(near, stores ? seed : ~seed);
    if (peer) pattern.fill(far, stores ? ~seed : seed);
    bench.world().barrier();
    static_cast<void>(time({}));
    bench.world().barrier();
    if (stores) return !peer || pattern.holds(far, seed);
    return !bench.leads() || pattern.holds(near, seed);
  }

  Bench& bench;
  ThreadShape shape;
  std::uint64_t count, stride;
  SymmetricArray<std::uint64_t> remote, local;
  TimedGrid timed;
  WordPattern pattern;
};

template <bool stores>
Measurement measurement_of(Bench& bench, const char* operation, const ThreadShape& shape, std::uint64_t count,
                           std::uint64_t stride) {
  Measurement measurement = thread_measurement(std::make_shared<State<stores>>(bench, shape, count, stride), operation,
                                               sizeof(std::uint64_t) * count);
  measurement.unit = Unit::gigabytes_per_second;
  measurement.settings.emplace_back("stride", stride);
  return measurement;
}

/// Words per thread: on a CPU, where few threads share the work, more than the first-level cache holds.
std::uint64_t words_each(const Bench& bench, std::uint64_t on_gpu) {
  return bench.world().device().is_gpu() ? on_gpu : 32 << 10;
}

template <bool stores>
std::vector<Measurement> against_threads(Bench& bench, const char* operation) {
  std::vector<Measurement> all;
  for (const ThreadShape& shape : resident_thread_shapes<RemoteAccess<stores>, Access>(bench))
    all.push_back(measurement_of<stores>(bench, operation, shape, shape.active * words_each(bench, 1024), 1));
  return all;
}

template <bool stores>
std::vector<Measurement> against_strides(Bench& bench, const char* operation) {
  const ThreadShape shape = resident_thread_shapes<RemoteAccess<stores>, Access>(bench).back();
  std::vector<Measurement> all;
  for (std::uint64_t stride = 1; stride <= 32; stride *= 2)
    all.push_back(measurement_of<stores>(bench, operation, shape, shape.active * words_each(bench, 128), stride));
  return all;
}

constexpr const char* method = "device/peer/signal";

const ListedCases address_space_cases(
    Command::address_space,
    {{"store", method, false, [](Bench& bench, std::uint64_t) { return against_threads<true>(bench, "store"); }},
     {"load", method, false, [](Bench& bench, std::uint64_t) { return against_threads<false>(bench, "load"); }},
     {"strided_store", method, false,
      [](Bench& bench, std::uint64_t) { return against_strides<true>(bench, "strided_store"); }},
     {"strided_load", method, false,
      [](Bench& bench, std::uint64_t) { return against_strides<false>(bench, "strided_load"); }}});

}  // namespace

}  // namespace beeline::bench::remote_access_cases
