// SPDX-License-Identifier: Apache-2.0
/// @file
/// A computation that fills the GPU, with and without workers of tasks that poll empty queues at the same time. The run
/// without workers is the bare peer: the difference is the workers' share of the multiprocessors, and the cost of their
/// polling.

#include <algorithm>
#include <memory>
#include <vector>

#include "beeline/host/tasks.hpp"
#include "cases/cases.hpp"
#include "harness/timed_grid.hpp"

namespace beeline::bench::beside_tasks_cases {

namespace {

constexpr const char* method = "task/peer/signal";
constexpr unsigned block_threads = 256, waves = 64;
/// Long enough that the workers poll their queues during a whole batch.
constexpr std::int64_t lease_ns = 100'000'000;

/// A task without work, which starts the workers.
struct Nothing {
  static constexpr const char* name = "nothing";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group&, const Context&, const Task&) const {}
};
using Functions = TaskList<Nothing>;

/// Sums and products in registers, by more blocks than the device holds at once.
struct Compute {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, BlockTimes* times, float* results,
                                      std::uint32_t steps) const {
    const auto& block = grid.block();
    const std::uint64_t start = machine::clock_ns();
    float a = static_cast<float>(block.thread_rank()), b = a + 1, c = a + 2, d = a + 3;
    for (std::uint32_t i = 0; i < steps * 100; ++i) {
      a = a * 0.5f + b, b = b * 0.5f + c;
      c = c * 0.5f + d, d = d * 0.5f + a;
    }
    results[grid.block_rank() * block.size() + block.thread_rank()] = a + b + c + d;
    block.sync();
    if (block.thread_rank() == 0) times[grid.block_rank()] = {start, machine::clock_ns()};
  }
};

class ComputeState {
 public:
  explicit ComputeState(Bench& bench)
      : bench_(bench),
        blocks_(waves * resident_blocks<Compute, BlockTimes*, float*, std::uint32_t>(bench.world(), block_threads)),
        times_(bench.world(), blocks_), results_(bench.world(), std::size_t{blocks_} * block_threads) {}

  double run(bool takes_part, std::uint32_t steps) {
    World& world = bench_.world();
    world.barrier();
    if (!takes_part) return 0;
    launch(world, {.blocks = blocks_, .threads = block_threads}, Compute{}, times_.data(), results_.data(), steps);
    world.synchronize();
    std::vector<BlockTimes> blocks(blocks_);
    world.copy(blocks.data(), times_.data(), times_.bytes());
    return whole_of(blocks);
  }
  [[nodiscard]] Settings settings() const {
    return {{"blocks", std::uint64_t{blocks_}}, {"threads_per_block", std::uint64_t{block_threads}}};
  }

 private:
  Bench& bench_;
  const unsigned blocks_;
  SymmetricArray<BlockTimes> times_;
  SymmetricArray<float> results_;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  bench.require_alike();
  if (!bench.world().device().is_gpu()) return {};  // a host rank's workers have their own threads
  const auto state = std::make_shared<ComputeState>(bench);
  const auto add = [&](const char* called, std::uint64_t multiprocessors, auto time) {
    Measurement measurement{.operation = "compute", .method = called};
    measurement.settings = state->settings();
    measurement.settings.emplace_back("multiprocessors", multiprocessors);
    measurement.time = std::move(time);
    return measurement;
  };
  std::vector<Measurement> all{add("bare/alone", 0, [=, &bench](Rounds rounds) {
    return time_batches(rounds, [&] { return state->run(bench.leads(), rounds.iterations); });
  })};
  all.back().peer_of = method;
  for (const std::uint32_t multiprocessors : {1u, 8u}) {
    all.push_back(add(method, multiprocessors, [=, &bench](Rounds rounds) {
      const std::uint32_t workers = 8 * multiprocessors;
      Tasks<Functions> tasks(bench.world(), {.queues = 8,
                                             .workers = workers,
                                             .multiprocessors = multiprocessors,
                                             .lease_ns = lease_ns,
                                             .idle_ns = lease_ns});
      tasks.register_function<Nothing>({});
      return time_batches(rounds, [&] {
        if (bench.leads()) tasks.post<Nothing>({}, 0);
        bench.world().synchronize();
        tasks.quiet();
        return state->run(bench.leads(), rounds.iterations);
      });
    }));
    all.back().baseline = 0;
  }
  return all;
}

const ListedCases cases(Command::methods, {{"compute", method, false, prepare}});

}  // namespace

}  // namespace beeline::bench::beside_tasks_cases
