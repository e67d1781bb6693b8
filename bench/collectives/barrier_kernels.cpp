// SPDX-License-Identifier: Apache-2.0
#include "collectives/barrier_kernels.hpp"

#include "beeline/collectives/barrier.hpp"
#include "harness/barrier_words.hpp"

namespace beeline::bench {

namespace {

constexpr std::uint64_t check_rounds = 16;
constexpr unsigned block_threads = 64, grid_threads_of_block = 256;

/// Calls `use` with a function that enters the barrier.
template <Algorithm algorithm, class Grid, class Use>
BEELINE_HOST_DEVICE void with_barrier(Grid& grid, const Context& ctx, const CollectiveChannel& channel, Use use) {
  if constexpr (algorithm == Algorithm::hierarchical) {
    Session session(grid, ctx, channel);
    use([&] { return barrier(grid, session, algorithm) == Status::ok; });
  } else {
    Session session(grid.block(), ctx, channel);
    use([&] { return session.barrier(algorithm, Order::memory, Timeout::none()) == Status::ok; });
  }
}

template <Algorithm algorithm>
struct NamedBarrierRounds {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, BlockTimes* times, CollectiveChannel channel,
                                      std::uint32_t warm_up, std::uint32_t rounds) const {
    with_barrier<algorithm>(grid, ctx, channel, [&](auto meet) {
      for (std::uint32_t i = 0; i < warm_up; ++i)
        if (!meet()) return;
      const std::uint64_t start = machine::clock_ns();
      for (std::uint32_t i = 0; i < rounds; ++i)
        if (!meet()) return;
      if (grid.block().thread_rank() == 0) times[grid.block_rank()] = {start, machine::clock_ns()};
    });
  }
};

template <Algorithm algorithm>
struct NamedBarrierCheck {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, std::uint64_t* words,
                                      std::uint64_t seed, std::uint64_t* wrong) const {
    with_barrier<algorithm>(grid, ctx, channel, [&](auto meet) {
      for (std::uint64_t round = 0; round < check_rounds; ++round) {
        store_everywhere(grid, ctx, words, seed, round);
        if (!meet()) return;
        add_to(wrong, count_absent(grid, ctx, words, seed, round));
        if (!meet()) return;  // no rank stores the next round's word before all have checked this one
      }
    });
  }
};

struct StoreEverywhere {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* words, std::uint64_t seed,
                                      std::uint64_t round) const {
    store_everywhere(grid, ctx, words, seed, round);
  }
};

struct Look {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* words, std::uint64_t seed,
                                      std::uint64_t round, std::uint64_t* wrong) const {
    add_to(wrong, count_absent(grid, ctx, words, seed, round));
  }
};

constexpr Algorithms every_algorithm = algorithms_of(Operation::barrier, Control::device);

}  // namespace

std::vector<GridShape> BarrierKernels::shapes(Algorithm algorithm) const {
  const World& world = bench_.world();
  if (!world.device().is_gpu()) return {{1, static_cast<unsigned>(world.config().host_threads)}};
  if (algorithm != Algorithm::hierarchical) return {{1, block_threads}};
  using Rounds = NamedBarrierRounds<Algorithm::hierarchical>;
  const unsigned most = resident_everywhere<Rounds, BlockTimes*, CollectiveChannel, std::uint32_t, std::uint32_t>(
      bench_, grid_threads_of_block);
  const auto multiprocessors = static_cast<unsigned>(world.device().multiprocessors);
  std::vector<GridShape> shapes;
  for (unsigned blocks : {4u, multiprocessors})
    if (blocks <= most) shapes.push_back({blocks, grid_threads_of_block});
  return shapes;
}

std::vector<double> BarrierKernels::time(const KernelBarrier& barrier, const CollectiveChannel& channel,
                                         Rounds rounds) {
  std::vector<double> times;
  for (std::uint32_t batch = 0; batch < rounds.batches; ++batch)
    times.push_back(with_member<every_algorithm>(barrier.algorithm, [&]<Algorithm algorithm>() {
      // At least one round precedes the timed rounds, because grids start at different times.
      return timed_.run(barrier.shape, true, NamedBarrierRounds<algorithm>{}, timed_.times(), channel,
                        rounds.warm_up + 1, rounds.iterations);
    }));
  return times;
}

bool BarrierKernels::holds(const KernelBarrier& barrier, const CollectiveChannel& channel, std::uint64_t seed) {
  World& world = bench_.world();
  return wrong_.after([&](std::uint64_t* wrong) {
    world.barrier();
    with_member<every_algorithm>(barrier.algorithm, [&]<Algorithm algorithm>() {
      launch(world, {.blocks = barrier.shape.blocks, .threads = barrier.shape.threads, .waits = true},
             NamedBarrierCheck<algorithm>{}, channel, words_.data(), seed, wrong);
    });
  }) == 0;
}

bool BarrierKernels::holds(const std::function<void()>& meet, std::uint64_t seed) {
  World& world = bench_.world();
  return wrong_.after([&](std::uint64_t* wrong) {
    world.barrier();
    for (std::uint64_t round = 0; round < check_rounds; ++round) {
      launch(world, {}, StoreEverywhere{}, words_.data(), seed, round);
      meet();
      launch(world, {}, Look{}, words_.data(), seed, round, wrong);
      meet();
    }
  }) == 0;
}

}  // namespace beeline::bench
