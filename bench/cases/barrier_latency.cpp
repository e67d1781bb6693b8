// SPDX-License-Identifier: Apache-2.0
/// @file
/// The barrier of all ranks inside a kernel; one `Barrier` object serves the whole loop.

#include "beeline/device/barrier.hpp"
#include "beeline/device/signal.hpp"
#include "cases/cases.hpp"
#include "cases/network_pair.hpp"
#include "harness/barrier_words.hpp"
#include "harness/group_choice.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench::barrier_latency_cases {

namespace {

template <Order order>
struct BarrierRounds {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop) const {
    Barrier barrier(grid.block(), ctx);
    time_rounds(grid.block(), loop, [&](std::uint64_t) { return barrier.sync(order) == Status::ok; });
  }
};

/// Ranks 0 and 1 signal each other, and wait.
struct SignalExchange {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* arrived) const {
    if (grid.block().thread_rank() != 0) return;
    const Thread one{};
    time_rounds(one, loop, [&](std::uint64_t sequence) {
      return signal(one, ctx, arrived, sequence, loop.peer) == Status::ok &&
             wait(one, ctx, arrived, Compare::greater_equal, sequence, loop.peer) == Status::ok;
    });
  }
};

/// Every rank stores a random word at every other rank, enters the barrier, and checks the words. A relaxed barrier
/// orders nothing by itself: fences around it do. The words are relaxed atomics, because ThreadSanitizer does not model
/// fences.
template <Order order>
struct BarrierCheck {
  static constexpr std::uint64_t rounds = 32;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t seed, std::uint64_t* words,
                                      std::uint64_t* wrong) const {
    const auto& block = grid.block();
    Barrier barrier(block, ctx);
    std::uint64_t absent = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      store_everywhere(block, ctx, words, seed, round);
      if (!meet(barrier, block)) return;
      absent += count_absent(block, ctx, words, seed, round);
      if (!meet(barrier, block)) return;  // no rank stores the next round's word before all have checked this one
    }
    add_to(wrong, absent);
  }

 private:
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

/// The data of one variant of the barrier.
class BarrierLoop {
 public:
  explicit BarrierLoop(Bench& bench) : bench_(bench), timed_(bench), words_(bench.world(), max_ranks), wrong_(bench) {}

  template <Order order>
  std::vector<double> time(unsigned threads, Rounds rounds) {
    return timed_.run(threads, true, rounds, BarrierRounds<order>{});
  }

  std::vector<double> time_signals(Rounds rounds) {
    return timed_.run(single_thread(bench_).threads, bench_.paired(), rounds, SignalExchange{}, words_.data());
  }

  template <Order order>
  bool verify(unsigned threads, std::uint64_t seed) {
    return wrong_.after([&](std::uint64_t* wrong) {
      bench_.world().barrier();
      launch(bench_.world(), {.blocks = 1, .threads = threads, .waits = true}, BarrierCheck<order>{}, seed,
             words_.data(), wrong);
    }) == 0;
  }

 private:
  Bench& bench_;
  TimedKernel timed_;
  SymmetricArray<std::uint64_t> words_;
  DeviceCount wrong_;
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
  bench.require_loads_and_stores();
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

/// Between nodes the peer is an exchange of two signals. The check of the barrier's order needs stores; there
/// conformance tests check the order.
std::vector<Measurement> prepare_across_nodes(Bench& bench, std::uint64_t) {
  require_two_nodes(bench);
  bench.require_alike();
  const auto loop = std::make_shared<BarrierLoop>(bench);
  const bool on_gpu = bench.world().device().is_gpu();
  const unsigned threads = on_gpu ? 32 : static_cast<unsigned>(bench.world().config().host_threads);
  std::vector<Measurement> all(1);
  all[0].operation = "barrier", all[0].method = "two_signals", all[0].peer_of = "device/peer/signal";
  all[0].time = [=](Rounds rounds) { return loop->time_signals(rounds); };
  all.push_back(measurement_of<Order::relaxed>(loop, on_gpu, threads));
  all.push_back(measurement_of<Order::memory>(loop, on_gpu, threads));
  for (std::size_t i = 1; i < all.size(); ++i) all[i].baseline = 0, all[i].verify = {};
  return all;
}

const ListedCases network_cases(Command::network, {{"barrier", "device/peer/signal", false, prepare_across_nodes}});
const ListedCases latency_cases(Command::latency, {{"barrier", "device/peer/signal", false, prepare}});

}  // namespace

}  // namespace beeline::bench::barrier_latency_cases
