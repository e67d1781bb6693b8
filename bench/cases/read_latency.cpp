// SPDX-License-Identifier: Apache-2.0
/// @file
/// Loads from the peer's memory: each of many threads repeatedly loads its own word there; the address of each load
/// depends on the value of the last. Source: seed 000 section 6.6.1.

#include "beeline/device/put_get.hpp"
#include "cases/cases.hpp"
#include "harness/random.hpp"
#include "harness/thread_sweep.hpp"

namespace beeline::bench::read_latency_cases {

namespace {

struct Reads {
  BlockTimes* times;
  std::uint64_t* remote;  ///< [threads] word `i` at the peer holds `i` in its low half
  std::uint64_t* found;   ///< [threads]
  std::uint32_t threads, loads, peer;
};

struct ReadChain {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Reads reads) const {
    const auto& block = grid.block();
    if (grid.sync(ctx) != Status::ok) return;
    const std::uint64_t start = machine::clock_ns();
    if (grid.thread_rank() < reads.threads) {
      std::uint64_t* there = ctx.at(reads.remote, reads.peer);
      std::uint64_t value = grid.thread_rank();
      for (std::uint32_t i = 0; i < reads.loads; ++i)
        value = detail::SystemAtomic<std::uint64_t>(there[static_cast<std::uint32_t>(value)])
                    .load(std::memory_order_relaxed);
      reads.found[grid.thread_rank()] = value;
    }
    block.sync();
    if (block.thread_rank() == 0) reads.times[grid.block_rank()] = {start, machine::clock_ns()};
  }
};

/// Random words, each of which has its index in its low half.
std::vector<std::uint64_t> chain(std::uint64_t seed, std::size_t count) {
  std::vector<std::uint64_t> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = random_word(seed, i) << 32 | i;
  return words;
}

struct State {
  State(Bench& bench_in, const ThreadShape& shape_in)
      : bench(bench_in), shape(shape_in), remote(bench.world(), shape.active), found(bench.world(), shape.active),
        timed(bench, shape.grid.blocks) {
    refresh(0);
  }

  void refresh(std::uint64_t seed) {
    bench.world().copy(remote.data(), chain(seed, shape.active).data(), remote.bytes());
  }

  std::vector<double> time(Rounds rounds) {
    const Reads reads{timed.times(), remote.data(), found.data(), shape.active, rounds.iterations, bench.peer()};
    return time_batches(rounds, [&] { return timed.run(shape.grid, bench.leads(), ReadChain{}, reads); });
  }

  bool verify(std::uint64_t seed) {
    refresh(seed);
    static_cast<void>(time({}));
    bench.world().barrier();
    if (!bench.leads()) return true;
    std::vector<std::uint64_t> values(shape.active);
    bench.world().copy(values.data(), found.data(), found.bytes());
    return values == chain(seed, shape.active);
  }

  Bench& bench;
  ThreadShape shape;
  SymmetricArray<std::uint64_t> remote, found;
  TimedGrid timed;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  std::vector<Measurement> all;
  for (const ThreadShape& shape : resident_thread_shapes<ReadChain, Reads>(bench)) {
    all.push_back(thread_measurement(std::make_shared<State>(bench, shape), "read_latency",
                                     sizeof(std::uint64_t) * shape.active));
    all.back().most_iterations = 1'000'000;
  }
  return all;
}

const ListedCases address_space_cases(Command::address_space, {{"read_latency", "device/peer/signal", false, prepare}});

}  // namespace

}  // namespace beeline::bench::read_latency_cases
