// SPDX-License-Identifier: Apache-2.0
/// @file
/// Commands to an engine, of the host (proxy/copy_engine/signal) or of the device (proxy/peer/signal): round trips at
/// rest, under load and from one lease to the next, rates of many posting blocks by one to eight engine threads, the
/// engine's CPU time, and where the time of a round trip goes.

#include <algorithm>

#include "cases/cases.hpp"
#include "cases/posted_words.hpp"

namespace beeline::bench {

namespace {

unsigned loading_blocks(const Bench& bench) { return bench.world().device().is_gpu() ? 8 : 1; }

/// Round trips at rest, and beside so many posts as half of those that the same blocks manage at most.
std::vector<Measurement> prepare_round_trips(Bench& bench, std::uint64_t) {
  bench.require_alike();
  std::vector<Measurement> all;
  for (const Heap heap : {Heap::pinned, Heap::symmetric}) {
    if (heap == Heap::symmetric && !bench.world().device().is_gpu()) continue;  // the same memory
    const unsigned loading = loading_blocks(bench);
    const auto alone = std::make_shared<Commands>(bench, Shape{1, 1, heap});
    const auto loaded = std::make_shared<Commands>(bench, Shape{loading + 1, 1, heap});
    Commands most(bench, {loading, 1, heap});
    constexpr std::uint32_t posts = 5000;
    static_cast<void>(most.rate_ns(posts));
    const auto interval_ns = bench.from_leader(static_cast<std::uint64_t>(2 * most.rate_ns(posts) / posts));
    for (const auto& [name, quantile] : {std::pair{"command_p50", 0.5}, std::pair{"command_p99", 0.99}}) {
      all.push_back(quantile_of(alone, name, quantile, 0, "none"));
      all.push_back(quantile_of(loaded, name, quantile, interval_ns, "half"));
      all.back().settings.emplace_back("posts_per_s", 1'000'000'000 * std::uint64_t{loading} / interval_ns);
    }
  }
  return all;
}

/// A device engine's round trips within a lease, of which so much is its kernel's part, and where the block has ended
/// and is started again.
std::vector<Measurement> prepare_leases(Bench& bench, std::uint64_t) {
  bench.require_alike();
  constexpr std::uint64_t rest_ns = 1'000'000;  // a block that is idle ends before
  const auto commands = std::make_shared<Commands>(bench, Shape{.heap = Heap::symmetric, .engine = EngineKind::device});
  std::vector<Measurement> all;
  for (const std::uint64_t rest : {std::uint64_t{0}, rest_ns})
    for (const auto& [name, quantile] : {std::pair{"command_p50", 0.5}, std::pair{"command_p99", 0.99}}) {
      all.push_back(quantile_of(commands, name, quantile, 0, rest == 0 ? "none" : "restart", rest));
      all.back().settings.emplace_back("poll_us", static_cast<std::uint64_t>(bench.world().config().engine_poll_us));
    }
  all.push_back(measurement_of(commands, "part_post", [=](Rounds rounds) {
    return time_batches(rounds, [&] {
      const std::vector<std::uint64_t> posting = commands->probe(0).posting;
      return posting.empty() ? 0.0 : static_cast<double>(posting[posting.size() / 2]);
    });
  }));
  all.back().most_iterations = 1;
  return all;
}

/// One shape; each is measured by itself, so that no other engine's threads spin beside it.
std::vector<Measurement> prepare_rate(Bench& bench, const Shape& shape) {
  bench.require_alike();
  const auto commands = std::make_shared<Commands>(bench, shape);
  Measurement measurement = measurement_of(commands, "command_rate", [=](Rounds rounds) {
    return time_batches(rounds, [&] { return commands->rate_ns(rounds.iterations); });
  });
  measurement.unit = Unit::million_messages_per_second;
  measurement.operations_per_iteration = shape.blocks;
  return {measurement};
}

/// Source: seed 003, 480 blocks and a whole GPU full of them, by one to eight service threads.
constexpr Shape rate_shapes[] = {{1, 1},
                                 {4, 1},
                                 {16, 1},
                                 {64, 1},
                                 {480, 1},
                                 {4096, 1},
                                 {64, 2},
                                 {64, 4},
                                 {64, 8},
                                 {480, 2},
                                 {480, 4},
                                 {480, 8},
                                 {4096, 2},
                                 {4096, 4},
                                 {4096, 8},
                                 {64, 1, Heap::symmetric},
                                 {480, 1, Heap::symmetric},
                                 {64, 4, Heap::symmetric},
                                 {1, 1, Heap::symmetric, false, EngineKind::device},
                                 {16, 1, Heap::symmetric, false, EngineKind::device},
                                 {64, 1, Heap::symmetric, false, EngineKind::device},
                                 {480, 1, Heap::symmetric, false, EngineKind::device}};

/// A host rank's grid runs its blocks one after the other, and has fewer cores.
bool is_of_gpus(const Shape& shape) {
  return shape.blocks > 4 || shape.engine_threads > 1 || shape.heap == Heap::symmetric;
}

Case rate_of(const Shape& shape) {
  const auto prepare = [&shape](Bench& bench, std::uint64_t) {
    if (is_of_gpus(shape) && !bench.world().device().is_gpu()) return std::vector<Measurement>();
    return prepare_rate(bench, shape);
  };
  return {"command_rate", method_of(shape.engine), false, prepare};
}

/// Source: seed 000, 4.4.3: post-work-wait.
std::vector<Measurement> prepare_cpu_time(Bench& bench, std::uint64_t) {
  std::vector<Measurement> all;
  for (const std::uint64_t work_us : {0, 10, 100, 1000}) {
    const auto commands = std::make_shared<Commands>(bench, Shape{});
    all.push_back(measurement_of(commands, "engine_cpu", [=](Rounds rounds) {
      return time_batches(rounds, [&] { return commands->engine_ns(rounds.iterations, 1000 * work_us); });
    }));
    all.back().settings.emplace_back("work_us", work_us);
    all.back().settings.emplace_back("poll_us", static_cast<std::uint64_t>(bench.world().config().engine_poll_us));
  }
  return all;
}

/// Where the time of a round trip goes, by the clocks of the kernel and of the engine's thread. Source: seed 003, the
/// parts of its latencies.
struct Parts {
  double post = 0, engine = 0, transfer = 0, completion = 0;  ///< nanoseconds
};

/// Collective. Medians of the kernel's, means of the engine's.
///   told_by_stream  the words lie in GPU memory: the stream that stores them tells the poster, too, maybe before the
///                   engine has noticed; so transfer and completion are one part
Parts parts_of(Commands& commands, bool told_by_stream) {
  const EngineStatistics before = commands.queues().statistics();
  const Commands::RoundTrips found = commands.probe(0);
  const EngineStatistics after = commands.queues().statistics();
  if (found.whole.empty()) return {};
  const double batches = static_cast<double>(std::max<std::uint64_t>(1, after.batches - before.batches));
  Parts parts;
  parts.post = static_cast<double>(found.posting[found.posting.size() / 2]);
  parts.engine = (after.begin_s - before.begin_s) * 1e9 / batches;
  const double rest = static_cast<double>(found.whole[found.whole.size() / 2]) - parts.post - parts.engine;
  parts.transfer = told_by_stream ? rest : (after.work_s - before.work_s) * 1e9 / batches;
  parts.completion = rest - parts.transfer;
  return parts;
}

std::vector<Measurement> prepare_parts(Bench& bench, std::uint64_t) {
  std::vector<Measurement> all;
  for (const Heap heap : {Heap::pinned, Heap::symmetric}) {
    if (heap == Heap::symmetric && !bench.world().device().is_gpu()) continue;  // the same memory
    const auto commands = std::make_shared<Commands>(bench, Shape{.heap = heap, .is_timed = true});
    for (const auto& [name, part] :
         {std::pair{"part_post", &Parts::post}, std::pair{"part_engine", &Parts::engine},
          std::pair{"part_transfer", &Parts::transfer}, std::pair{"part_completion", &Parts::completion}}) {
      all.push_back(measurement_of(commands, name, [=, part = part](Rounds rounds) {
        return time_batches(rounds, [&] { return parts_of(*commands, heap == Heap::symmetric).*part; });
      }));
      all.back().most_iterations = 1;
    }
  }
  return all;
}

std::vector<Case> all_cases() {
  const char* const of_host = method_of(EngineKind::host);
  std::vector<Case> all = {{"command_load", of_host, false, prepare_round_trips},
                           {"command_leases", method_of(EngineKind::device), false, prepare_leases},
                           {"command_parts", of_host, false, prepare_parts},
                           {"engine_cpu", of_host, false, prepare_cpu_time}};
  for (const Shape& shape : rate_shapes) all.push_back(rate_of(shape));
  return all;
}

const ListedCases cases(Command::methods, all_cases());

}  // namespace

}  // namespace beeline::bench
