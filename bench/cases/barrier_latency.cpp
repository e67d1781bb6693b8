// SPDX-License-Identifier: Apache-2.0
/// @file
/// The barrier of all ranks inside a kernel, with a `Barrier` kept over the loop.

#include <cuda/atomic>

#include "beeline/device/barrier.hpp"
#include "beeline/device/put_get.hpp"
#include "cases/cases.hpp"
#include "harness/group_choice.hpp"
#include "harness/random.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench {

namespace {

template <Order order>
struct BarrierRounds {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop) const {
    Barrier barrier(grid.block(), ctx);
    time_rounds(grid.block(), loop, [&](std::uint64_t) { return barrier.sync(order) == Status::ok; });
  }
};

/// Every rank stores a random word at every other, meets, and looks. A relaxed barrier orders nothing by itself:
/// fences around it do. The words are atomics, relaxed ones, because ThreadSanitizer knows no fences.
template <Order order>
struct BarrierCheck {
  using Word = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
  static constexpr std::uint64_t rounds = 32;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t seed, std::uint64_t* words,
                                      std::uint64_t* wrong) const {
    const auto& block = grid.block();
    Barrier barrier(block, ctx);
    std::uint64_t mismatches = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (std::uint32_t peer = block.thread_rank(); peer < ctx.size; peer += block.size())
        put_value(ctx, &words[ctx.rank], expected(seed, round, ctx.rank), peer);
      if (!meet(barrier, block)) return;
      for (std::uint32_t from = block.thread_rank(); from < ctx.size; from += block.size())
        if (Word(words[from]).load(cuda::memory_order_relaxed) != expected(seed, round, from)) ++mismatches;
      if (!meet(barrier, block)) return;  // nobody stores the next round's before all have looked
    }
    const bool any = block.any(mismatches != 0);
    if (block.thread_rank() == 0) *wrong = any ? 1 : 0;
  }

 private:
  [[nodiscard]] static BEELINE_HOST_DEVICE std::uint64_t expected(std::uint64_t seed, std::uint64_t round,
                                                                  std::uint32_t rank) {
    return random_word(seed, round * max_ranks + rank);
  }

  template <class Group>
  [[nodiscard]] static BEELINE_HOST_DEVICE bool meet(Barrier<Group>& barrier, const Group& group) {
    if (order == Order::memory) return barrier.sync(order) == Status::ok;
    group.sync();
    fence();
    const bool met = barrier.sync(order) == Status::ok;
    fence();
    group.sync();
    return met;
  }
};

/// The state of one shape of barrier.
class BarrierLoop {
 public:
  explicit BarrierLoop(Bench& bench)
      : bench_(bench), timed_(bench), words_(bench.world(), max_ranks), wrong_(bench.world(), 1) {}

  template <Order order>
  std::vector<double> time(unsigned threads, Rounds rounds) {
    return timed_.run(threads, true, rounds, BarrierRounds<order>{});
  }

  template <Order order>
  bool verify(unsigned threads, std::uint64_t seed) {
    World& world = bench_.world();
    std::uint64_t wrong = 1;
    world.copy(wrong_.data(), &wrong, sizeof wrong);
    world.barrier();
    launch(world, {.blocks = 1, .threads = threads, .waits = true}, BarrierCheck<order>{}, seed, words_.data(),
           wrong_.data());
    world.synchronize();
    world.copy(&wrong, wrong_.data(), sizeof wrong);
    return wrong == 0;
  }

 private:
  Bench& bench_;
  TimedKernel timed_;
  SymmetricArray<std::uint64_t> words_, wrong_;
};

template <Order order>
Measurement measurement_of(std::shared_ptr<BarrierLoop> loop, bool on_gpu, unsigned threads) {
  Measurement measurement{.operation = "barrier", .method = "device/peer/signal"};
  measurement.settings = GroupChoice{on_gpu ? GroupKind::block : GroupKind::host_team, threads}.settings();
  measurement.settings.emplace_back("order", order == Order::relaxed ? "relaxed" : "memory");
  measurement.time = [=](Rounds rounds) { return loop->time<order>(threads, rounds); };
  measurement.verify = [=](std::uint64_t seed) { return loop->verify<order>(threads, seed); };
  return measurement;
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  const bool on_gpu = bench.world().device().is_gpu();
  std::vector<unsigned> threads = {32, 256};
  if (bench.options().threads_per_block != 0) threads = {bench.options().threads_per_block};
  if (!on_gpu) threads = {static_cast<unsigned>(bench.world().config().host_threads)};
  auto loop = std::make_shared<BarrierLoop>(bench);
  std::vector<Measurement> all;
  for (unsigned each : threads) {
    all.push_back(measurement_of<Order::relaxed>(loop, on_gpu, each));
    all.push_back(measurement_of<Order::memory>(loop, on_gpu, each));
  }
  return all;
}

}  // namespace

Case barrier_latency() { return {"barrier", "device/peer/signal", false, prepare}; }

}  // namespace beeline::bench
