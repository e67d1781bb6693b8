// SPDX-License-Identifier: Apache-2.0
/// @file
/// Stores to the peer's memory: each of many threads stores to its own word there, and waits for the peer's answer.
/// Source: seed 000 section 6.6.1.

#include "beeline/device/signal.hpp"
#include "cases/cases.hpp"
#include "harness/thread_sweep.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench::write_latency_cases {

namespace {

struct Writes {
  BlockTimes* times;
  std::uint64_t* words;  ///< [threads] contiguous
  std::uint64_t first;   ///< sequence number of the last round of the previous launch
  std::uint32_t threads, rounds, peer;
  bool leads;
};

struct WritePingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Writes writes) const {
    const auto& block = grid.block();
    if (grid.sync(ctx) != Status::ok) return;
    const std::uint64_t start = machine::clock_ns();
    const bool answered = grid.thread_rank() >= writes.threads || play(ctx, writes, writes.words + grid.thread_rank());
    if (block.any(!answered)) return;
    if (block.thread_rank() == 0) writes.times[grid.block_rank()] = {start, machine::clock_ns()};
  }

 private:
  static BEELINE_HOST_DEVICE bool play(const Context& ctx, const Writes& writes, std::uint64_t* word) {
    for (std::uint64_t sequence = writes.first + 1; sequence <= writes.first + writes.rounds; ++sequence) {
      const bool answered = round_trip(
          writes.leads, [&] { signal(Thread{}, ctx, word, sequence, writes.peer, Order::relaxed); },
          [&] {
            return wait(Thread{}, ctx, word, Compare::greater_equal, sequence, writes.peer, Timeout::none(),
                        Order::relaxed) == Status::ok;
          });
      if (!answered) return false;
    }
    return true;
  }
};

struct State {
  State(Bench& bench_in, const ThreadShape& shape_in)
      : bench(bench_in), shape(shape_in), words(bench.world(), shape.active), timed(bench, shape.grid.blocks) {}

  std::vector<double> time(Rounds rounds) {
    return time_batches(rounds, [&] {
      const Writes writes{timed.times(),     words.data(), last,         shape.active,
                          rounds.iterations, bench.peer(), bench.leads()};
      last += rounds.iterations;
      return timed.run(shape.grid, bench.paired(), WritePingPong{}, writes);
    });
  }

  /// Runs one more round; returns whether each word is the word that was sent last.
  bool verify(std::uint64_t) {
    static_cast<void>(time({}));
    bench.world().barrier();
    if (!bench.paired()) return true;
    std::vector<std::uint64_t> found(words.count());
    bench.world().copy(found.data(), words.data(), words.bytes());
    return found == std::vector<std::uint64_t>(words.count(), last);
  }

  Bench& bench;
  ThreadShape shape;
  SymmetricArray<std::uint64_t> words;
  TimedGrid timed;
  std::uint64_t last = 0;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  std::vector<Measurement> all;
  for (const ThreadShape& shape : resident_thread_shapes<WritePingPong, Writes>(bench)) {
    all.push_back(thread_measurement(std::make_shared<State>(bench, shape), "write_latency",
                                     sizeof(std::uint64_t) * shape.active));
    all.back().operations_per_iteration = 2;
    all.back().most_iterations = 1'000'000;
  }
  return all;
}

const ListedCases address_space_cases(Command::address_space,
                                      {{"write_latency", "device/peer/signal", false, prepare}});

}  // namespace

}  // namespace beeline::bench::write_latency_cases
