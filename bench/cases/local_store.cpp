// SPDX-License-Identifier: Apache-2.0
/// @file
/// Stores of words of 8 bytes to this rank's own memory: the bandwidth of the written words, by the distance between
/// words. Source: seed 000, figure 2.17.

#include "beeline/device/put_get.hpp"
#include "cases/cases.hpp"
#include "harness/device_count.hpp"
#include "harness/timed_grid.hpp"

namespace beeline::bench::local_store_cases {

namespace {

/// Word `i` of a pass is `first + i`, at `words[i * stride]`.
struct Words {
  std::uint64_t* words;
  std::uint64_t count, stride, first;
};

struct StoreWords {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, BlockTimes* times, Words w,
                                      std::uint32_t passes) const {
    const auto& block = grid.block();
    if (grid.sync(ctx) != Status::ok) return;
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t pass = 0; pass < passes; ++pass) {
      for (std::uint64_t i = grid.thread_rank(); i < w.count; i += grid.size()) w.words[i * w.stride] = w.first + i;
      fence();  // the next pass stores to the same words again
    }
    block.sync();
    if (block.thread_rank() == 0) times[grid.block_rank()] = {start, machine::clock_ns()};
  }
};

struct CountOthers {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, Words w, std::uint64_t* others) const {
    std::uint64_t mine = 0;
    for (std::uint64_t i = grid.thread_rank(); i < w.count; i += grid.size())
      mine += w.words[i * w.stride] != w.first + i ? 1 : 0;
    add_to(others, mine);
  }
};

/// Bytes from the first word to the last: on a GPU the touched sectors of 32 bytes exceed the second-level cache at
/// every stride.
std::uint64_t span_bytes(const Bench& bench) {
  return std::uint64_t{bench.world().device().is_gpu() ? 512u : 8u} << 20;
}

class Stores {
 public:
  /// Collective.
  Stores(Bench& bench, const GridShape& shape)
      : bench_(bench), shape_(shape), memory_(bench.world(), span_bytes(bench) / sizeof(std::uint64_t)),
        timed_(bench, shape.blocks), others_(bench) {}

  [[nodiscard]] std::uint64_t count(std::uint64_t stride) const { return memory_.count() / stride; }

  double time(std::uint64_t stride, std::uint64_t first, std::uint32_t passes) {
    return timed_.run(shape_, bench_.leads(), StoreWords{}, timed_.times(), words(stride, first), passes);
  }
  bool verify(std::uint64_t stride, std::uint64_t seed) {
    static_cast<void>(time(stride, ~seed, 1));
    static_cast<void>(time(stride, seed, 1));
    const auto count = [&](std::uint64_t* others) {
      launch(bench_.world(), {.blocks = shape_.blocks, .threads = shape_.threads}, CountOthers{}, words(stride, seed),
             others);
    };
    return !bench_.leads() || others_.after(count) == 0;
  }

 private:
  [[nodiscard]] Words words(std::uint64_t stride, std::uint64_t first) const {
    return {memory_.data(), count(stride), stride, first};
  }

  Bench& bench_;
  GridShape shape_;
  SymmetricArray<std::uint64_t> memory_;
  TimedGrid timed_;
  DeviceCount others_;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  bench.require_alike();
  const unsigned threads = grid_threads(bench);
  const GridShape shape{resident_everywhere<StoreWords, BlockTimes*, Words, std::uint32_t>(bench, threads), threads};
  require(shape.blocks > 0, Status::no_resource, "no block of threads could be resident on every rank");
  const auto stores = std::make_shared<Stores>(bench, shape);
  std::vector<Measurement> all;
  for (std::uint64_t stride = 1; stride <= 32; stride *= 2) {
    Measurement measurement{.operation = "strided_local_store", .method = "device/peer/signal"};
    measurement.bytes = stores->count(stride) * sizeof(std::uint64_t);
    measurement.unit = Unit::gigabytes_per_second;
    measurement.settings = shape.settings(bench.world().device().is_gpu());
    measurement.settings.emplace_back("stride", stride);
    measurement.time = [=](Rounds rounds) {
      return time_batches(rounds, [&] { return stores->time(stride, 0, rounds.iterations); });
    };
    measurement.verify = [=](std::uint64_t seed) { return stores->verify(stride, seed); };
    all.push_back(std::move(measurement));
  }
  return all;
}

const ListedCases cases(Command::address_space, {{"strided_local_store", "device/peer/signal", false, prepare}});

}  // namespace

}  // namespace beeline::bench::local_store_cases
