// SPDX-License-Identifier: Apache-2.0
/// @file
/// The parts of a posted command's time, by the clocks of the kernel and of the engine's thread, compared with the same
/// parts without an engine: the stores of a post, and the travel of a word from one block of a GPU to another. Source:
/// seed 003, the parts of its latencies. A put has no part at its target.

#include <algorithm>

#include "cases/cases.hpp"
#include "cases/posted_words.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench::command_parts_cases {

namespace {

struct Parts {
  double post = 0, engine = 0, transfer = 0, completion = 0;  ///< nanoseconds
};

double median_of(const std::vector<std::uint64_t>& ascending) {
  return ascending.empty() ? 0.0 : static_cast<double>(ascending[ascending.size() / 2]);
}

/// Collective. Medians of the kernel's parts, means of the engine's parts.
///   told_by_stream  the words lie in GPU memory: the stream that stores them also notifies the poster, perhaps before
///                   the engine has noticed; so transfer and completion are one part
Parts parts_of(Commands& commands, bool told_by_stream) {
  const EngineStatistics before = commands.queues().statistics();
  const Commands::RoundTrips found = commands.probe(0);
  const EngineStatistics after = commands.queues().statistics();
  if (found.whole.empty()) return {};
  const double batches = static_cast<double>(std::max<std::uint64_t>(1, after.batches - before.batches));
  Parts parts;
  parts.post = median_of(found.posting);
  parts.engine = (after.begin_s - before.begin_s) * 1e9 / batches;
  const double rest = median_of(found.whole) - parts.post - parts.engine;
  parts.transfer = told_by_stream ? rest : (after.work_s - before.work_s) * 1e9 / batches;
  parts.completion = rest - parts.transfer;
  return parts;
}

struct BarePosts {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, Loop loop, beeline::Command* commands) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      bare_post_command(commands[sequence % command_ring_depth], sequence);
      return true;
    });
  }
};

Measurement bare_posts(Bench& bench) {
  struct State {
    explicit State(Bench& bench) : commands(bench.world(), command_ring_depth, Heap::pinned), timed(bench) {}
    SymmetricArray<beeline::Command> commands;
    TimedKernel timed;
  };
  const auto state = std::make_shared<State>(bench);
  Measurement measurement{.operation = "part_post", .method = "bare/post", .bytes = sizeof(std::uint64_t)};
  measurement.peer_of = method_of(EngineKind::host);
  measurement.settings = {{"blocks", std::uint64_t{1}}, {"memory", "pinned"}};
  measurement.time = [=, &bench](Rounds rounds) {
    return state->timed.run(block_threads, bench.leads(), rounds, BarePosts{}, state->commands.data());
  };
  return measurement;
}

/// A word goes from one block to another and back through the second-level cache.
struct BareHops {
  using Word = machine::DeviceAtomic<std::uint64_t>;
  static constexpr std::uint32_t most_polls = 1 << 24;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, BlockTimes* times, std::uint64_t first,
                                      std::uint32_t rounds, PaddedWord* words) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint32_t block = grid.block_rank();
    const std::uint64_t start = machine::clock_ns();
    for (std::uint64_t value = first; value < first + rounds; ++value) {
      if (block == 0) Word(words[0].value).store(value, std::memory_order_release);
      if (!came(words[block == 0 ? 1 : 0].value, value)) return;
      if (block == 1) Word(words[1].value).store(value, std::memory_order_release);
    }
    times[block] = {start, machine::clock_ns()};
  }

 private:
  static BEELINE_HOST_DEVICE bool came(std::uint64_t& word, std::uint64_t value) {
    for (std::uint32_t poll = 0; poll < most_polls; ++poll)
      if (Word(word).load(std::memory_order_acquire) >= value) return true;
    return false;
  }
};

Measurement bare_hops(Bench& bench) {
  constexpr unsigned blocks = 2;
  struct State {
    explicit State(Bench& bench) : timed(bench, blocks), words(bench.world(), blocks) {}
    TimedGrid timed;
    SymmetricArray<PaddedWord> words;
    std::uint64_t next = 1;
  };
  const auto state = std::make_shared<State>(bench);
  Measurement measurement{.operation = "part_hop", .method = "bare/two_flags", .bytes = sizeof(std::uint64_t)};
  measurement.peer_of = method_of(EngineKind::device);
  measurement.settings = {{"blocks", std::uint64_t{blocks}}, {"memory", "device"}};
  measurement.operations_per_iteration = 2;
  measurement.time = [=, &bench](Rounds rounds) {
    return time_batches(rounds, [&] {
      const std::uint64_t first = state->next;
      state->next += rounds.iterations;
      return state->timed.run({blocks, block_threads}, bench.leads(), BareHops{}, state->timed.times(), first,
                              rounds.iterations, state->words.data());
    });
  };
  return measurement;
}

std::vector<Measurement> prepare_by_host(Bench& bench, std::uint64_t) {
  std::vector<Measurement> all{bare_posts(bench)};
  for (const Heap heap : {Heap::pinned, Heap::symmetric}) {
    if (heap == Heap::symmetric && !bench.world().device().is_gpu()) continue;  // host ranks: one memory
    const auto commands = std::make_shared<Commands>(bench, Shape{.heap = heap, .is_timed = true});
    for (const auto& [name, part] :
         {std::pair{"part_post", &Parts::post}, std::pair{"part_engine", &Parts::engine},
          std::pair{"part_transfer", &Parts::transfer}, std::pair{"part_completion", &Parts::completion}}) {
      all.push_back(measurement_of(commands, name, [=, part = part](Rounds rounds) {
        return time_batches(rounds, [&] { return parts_of(*commands, heap == Heap::symmetric).*part; });
      }));
      all.back().most_iterations = 1;
      if (part == &Parts::post) all.back().baseline = 0;
    }
  }
  return all;
}

/// The kernel's part. On a GPU also a hop between its blocks without a queue: a post and a completion contain one hop
/// each.
std::vector<Measurement> prepare_by_device(Bench& bench, std::uint64_t) {
  bench.require_alike();
  const auto commands = std::make_shared<Commands>(bench, Shape{.heap = Heap::symmetric, .engine = EngineKind::device});
  std::vector<Measurement> all{measurement_of(commands, "part_post", [=](Rounds rounds) {
    return time_batches(rounds, [&] { return median_of(commands->probe(0).posting); });
  })};
  all.back().most_iterations = 1;
  if (bench.world().device().is_gpu()) all.push_back(bare_hops(bench));
  return all;
}

const ListedCases cases(Command::methods, {{"command_parts", method_of(EngineKind::host), false, prepare_by_host},
                                           {"command_parts", method_of(EngineKind::device), false, prepare_by_device}});

}  // namespace

}  // namespace beeline::bench::command_parts_cases
