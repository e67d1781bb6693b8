// SPDX-License-Identifier: Apache-2.0
/// @file
/// Atomics of one thread on a word of the peer: the time until the thread has the word's old value.

#include "beeline/device/atomic.hpp"
#include "cases/cases.hpp"
#include "harness/group_choice.hpp"
#include "harness/random.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench::atomic_latency_cases {

namespace {

/// Each of these changes the word from `before` to `before + 1`, and returns the old value.
struct FetchAdd {
  static BEELINE_HOST_DEVICE std::uint64_t by_library(const Context& ctx, std::uint64_t* word, std::uint64_t,
                                                      std::uint32_t peer) {
    std::uint64_t held = 0;
    return atomic_fetch_add(ctx, word, 1, peer, held) == Status::ok ? held : ~std::uint64_t{0};
  }
  static BEELINE_HOST_DEVICE std::uint64_t bare(std::uint64_t* there, std::uint64_t) {
    return bare_fetch_add(there, 1);
  }
};
struct CompareSwap {
  static BEELINE_HOST_DEVICE std::uint64_t by_library(const Context& ctx, std::uint64_t* word, std::uint64_t before,
                                                      std::uint32_t peer) {
    std::uint64_t held = 0;
    return atomic_compare_swap(ctx, word, before, before + 1, peer, held) == Status::ok ? held : ~std::uint64_t{0};
  }
  static BEELINE_HOST_DEVICE std::uint64_t bare(std::uint64_t* there, std::uint64_t before) {
    return bare_compare_swap(there, before, before + 1);
  }
};

/// Every round checks the returned value: therefore the next round starts after it, and no other thread may change the
/// word.
template <class Atomic, bool library>
struct AtomicRounds {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* word,
                                      std::uint64_t* there, std::uint64_t base) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      const std::uint64_t before = base + sequence - 1;
      if constexpr (library)
        return Atomic::by_library(ctx, word, before, loop.peer) == before;
      else
        return Atomic::bare(there, before) == before;
    });
  }
};

/// The data of one measurement.
template <class Atomic, bool library>
struct State {
  explicit State(Bench& bench_in) : bench(bench_in), word(bench.world(), 1), timed(bench) {}

  std::vector<double> time(Rounds rounds) {
    std::uint64_t* there = bench.leads() ? word.at(1) : nullptr;
    return timed.run(single_thread(bench).threads, bench.leads(), rounds, AtomicRounds<Atomic, library>{}, word.data(),
                     there, base);
  }

  /// Runs one more round, which starts at a random value; returns whether the peer's word then holds the right value.
  bool verify(std::uint64_t seed) {
    World& world = bench.world();
    base = random_word(seed, 0);
    const std::uint64_t before = base + timed.last();
    if (world.rank() == 1) world.copy(word.data(), &before, sizeof before);
    static_cast<void>(time({}));
    world.barrier();
    if (world.rank() != 1) return true;
    std::uint64_t found = 0;
    world.copy(&found, word.data(), sizeof found);
    return found == before + 1;
  }

  Bench& bench;
  SymmetricArray<std::uint64_t> word;
  TimedKernel timed;
  std::uint64_t base = 0;
};

template <class Atomic, bool library>
Measurement measurement_of(Bench& bench, const char* operation, const char* method) {
  auto state = std::make_shared<State<Atomic, library>>(bench);
  Measurement measurement{.operation = operation, .method = method, .bytes = sizeof(std::uint64_t)};
  measurement.most_iterations = 1'000'000;
  measurement.settings = single_thread(bench).settings();
  measurement.time = [=](Rounds rounds) { return state->time(rounds); };
  measurement.verify = [=](std::uint64_t seed) { return state->verify(seed); };
  return measurement;
}

constexpr const char* method = "device/peer/signal";

template <class Atomic>
Case atomic_latency(const char* operation) {
  return {operation, method, false, [=](Bench& bench, std::uint64_t) {
            std::vector<Measurement> both = {measurement_of<Atomic, false>(bench, operation, "bare/atomic"),
                                             measurement_of<Atomic, true>(bench, operation, method)};
            both[0].peer_of = method;
            both[0].stores_to_peer = true;
            both[1].baseline = 0;
            return both;
          }};
}

const ListedCases rate_cases(Command::rate,
                             {atomic_latency<FetchAdd>("fetch_add"), atomic_latency<CompareSwap>("compare_swap")});

}  // namespace

}  // namespace beeline::bench::atomic_latency_cases
