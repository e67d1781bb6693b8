// SPDX-License-Identifier: Apache-2.0
/// @file
/// Commands to an engine, of the host (proxy/copy_engine/signal) or of the device (proxy/peer/signal): round trips at
/// rest, under load, of many blocks at once and from one lease to the next, rates of many posting blocks by one to
/// eight engine threads, and the engine's CPU time, at work and idle.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cases/bare_takers.hpp"
#include "cases/cases.hpp"
#include "cases/posted_words.hpp"
#include "harness/timed_host.hpp"
#include "peers/bare_copy.hpp"

namespace beeline::bench::commands_cases {

namespace {

unsigned loading_blocks(const Bench& bench) { return bench.world().device().is_gpu() ? 8 : 1; }

/// Round trips at rest, and beside other posts at half of the highest rate of the same blocks.
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

/// A device engine's round trips within a lease, and where the block has ended and is started again.
std::vector<Measurement> prepare_leases(Bench& bench, std::uint64_t) {
  bench.require_alike();
  constexpr std::uint64_t rest_ns = 1'000'000;  // an idle block ends earlier
  const auto commands = std::make_shared<Commands>(bench, Shape{.heap = Heap::symmetric, .engine = EngineKind::device});
  std::vector<Measurement> all;
  for (const std::uint64_t rest : {std::uint64_t{0}, rest_ns})
    for (const auto& [name, quantile] : {std::pair{"command_p50", 0.5}, std::pair{"command_p99", 0.99}}) {
      all.push_back(quantile_of(commands, name, quantile, 0, rest == 0 ? "none" : "restart", rest));
      all.back().settings.emplace_back("poll_us", static_cast<std::uint64_t>(bench.world().config().engine_poll_us));
    }
  return all;
}

/// The stores of words in GPU memory without an engine: the CPU issues them to `streams` streams, in each call as many
/// as an engine gathers.
Measurement bare_writes_of(Bench& bench, std::uint64_t streams) {
  constexpr unsigned words_of_call = 64;
  struct State {
    explicit State(Bench& bench) : words(bench.world(), words_of_call) {}
    SymmetricArray<PaddedWord> words;
    std::vector<std::unique_ptr<Stream>> streams;
    std::uint64_t next = 0;
  };
  const auto state = std::make_shared<State>(bench);
  for (std::uint64_t i = 0; i < streams; ++i) state->streams.push_back(bench.world().make_stream());
  std::vector<std::uint64_t*> there;
  for (unsigned i = 0; i < words_of_call; ++i)
    there.push_back(&bench.world().at(state->words.data(), static_cast<int>(bench.peer()))[i].value);
  Measurement measurement{.operation = "command_rate", .method = "bare/stream_writes", .bytes = sizeof(std::uint64_t)};
  measurement.operations_per_iteration = words_of_call;
  measurement.most_iterations = 256;
  measurement.peer_of = method_of(EngineKind::host);
  measurement.stores_to_peer = true;
  measurement.settings = {{"streams", streams}, {"words_of_call", std::uint64_t{words_of_call}}};
  measurement.time = [=, &bench](Rounds rounds) {
    return time_on_host(
        bench, rounds,
        [&] {
          if (!bench.leads()) return;
          ++state->next;
          bare_writes(*state->streams[state->next % streams], there, state->next);
        },
        [&] {
          for (const std::unique_ptr<Stream>& stream : state->streams) bench.world().synchronize(*stream);
        });
  };
  return measurement;
}

/// The same words, posted without queues, and stored by the same number of threads.
Measurement bare_takers_of(Bench& bench, const Shape& shape, const std::shared_ptr<Commands>& commands) {
  const auto takers = std::make_shared<BareTakers>(bench, shape.blocks, shape.engine_threads, commands->words_there());
  Measurement measurement{.operation = "command_rate", .method = "bare/take", .bytes = sizeof(std::uint64_t)};
  measurement.peer_of = method_of(EngineKind::host);
  measurement.stores_to_peer = true;
  measurement.operations_per_iteration = shape.blocks;
  measurement.settings = {{"blocks", std::uint64_t{shape.blocks}},
                          {"threads", static_cast<std::uint64_t>(shape.engine_threads)}};
  measurement.time = [=](Rounds rounds) {
    return time_batches(rounds, [&] { return takers->rate_ns(rounds.iterations, block_threads); });
  };
  return measurement;
}

/// One shape; each is measured by itself, so that no other engine's threads spin beside it.
std::vector<Measurement> prepare_rate(Bench& bench, const Shape& shape) {
  bench.require_alike();
  const auto commands = std::make_shared<Commands>(bench, shape);
  std::vector<Measurement> all;
  const bool is_by_host = shape.engine == EngineKind::host;
  if (is_by_host && shape.heap == Heap::symmetric)
    all.push_back(bare_writes_of(bench, shape.engine_threads == 1 ? 1 : 4));
  if (is_by_host && shape.heap == Heap::pinned && shape.blocks == 480)
    all.push_back(bare_takers_of(bench, shape, commands));
  all.push_back(measurement_of(commands, "command_rate", [=](Rounds rounds) {
    return time_batches(rounds, [&] { return commands->rate_ns(rounds.iterations); });
  }));
  all.back().operations_per_iteration = shape.blocks;
  if (all.size() > 1) all.back().baseline = 0;
  for (Measurement& one : all) one.unit = Unit::million_messages_per_second;
  return all;
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
                                 {480, 1, Heap::symmetric, false, EngineKind::device},
                                 {480, 1, Heap::symmetric, false, EngineKind::device, 2}};

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

/// Round trips of all blocks of a grid, which post at the same time. Source: seed 003, latencies of 480 blocks and of a
/// whole GPU full of them, by one to eight service threads, and by a block of the device whose queues lie in its
/// memory. The quarter of the device that is booked for such a block leaves no room for a grid that fills the device.
constexpr Shape latency_shapes[] = {{1, 1},
                                    {480, 1},
                                    {480, 2},
                                    {480, 4},
                                    {480, 8},
                                    {4096, 1},
                                    {4096, 2},
                                    {4096, 4},
                                    {4096, 8},
                                    {1, 1, Heap::symmetric},
                                    {480, 1, Heap::symmetric},
                                    {480, 8, Heap::symmetric},
                                    {4096, 8, Heap::symmetric},
                                    {1, 1, Heap::symmetric, false, EngineKind::device},
                                    {480, 1, Heap::symmetric, false, EngineKind::device},
                                    {480, 1, Heap::symmetric, false, EngineKind::device, 2}};

Case latency_of(const Shape& shape) {
  const auto prepare = [&shape](Bench& bench, std::uint64_t) {
    std::vector<Measurement> all;
    if (is_of_gpus(shape) && !bench.world().device().is_gpu()) return all;
    bench.require_alike();
    require(resident_everywhere<PostTogether, Posting, Probe>(bench, block_threads) >= shape.blocks,
            Status::no_resource, "so many blocks do not run at once on this device");
    const auto commands = std::make_shared<Commands>(bench, shape);
    for (const auto& [name, quantile] : {std::pair{"command_p50", 0.5}, std::pair{"command_p99", 0.99}})
      all.push_back(
          quantile_of(commands, name, quantile, "together", [=] { return commands->probe_together().whole; }));
    return all;
  };
  return {"command_together", method_of(shape.engine), false, prepare};
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

constexpr std::chrono::milliseconds idle_iteration(1);

/// CPU nanoseconds of a thread that for `milliseconds` only sleeps, `sleep_us` at a time.
double sleeper_ns(std::uint32_t milliseconds, int sleep_us) {
  const auto cpu_ns = [] {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) * 1e9 + static_cast<double>(used.tv_nsec);
  };
  const double before = cpu_ns();
  for (const auto end = std::chrono::steady_clock::now() + milliseconds * idle_iteration;
       std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
  return cpu_ns() - before;
}

/// An engine without commands. It polls, since a GPU cannot wake a thread. The bare peer sleeps for the same times.
std::vector<Measurement> prepare_idle(Bench& bench, std::uint64_t) {
  const int poll_us = bench.world().config().engine_poll_us;
  std::vector<Measurement> all;
  if (poll_us > 0 && bench.world().device().is_gpu()) {
    all.push_back({.operation = "engine_idle", .method = "bare/sleep", .peer_of = method_of(EngineKind::host)});
    all.back().time = [=](Rounds rounds) {
      return time_batches(rounds, [&] { return sleeper_ns(rounds.iterations, poll_us); });
    };
  }
  const auto commands = std::make_shared<Commands>(bench, Shape{});
  all.push_back(measurement_of(commands, "engine_idle", [=](Rounds rounds) {
    std::this_thread::sleep_for(idle_iteration);  // until the engine has begun to sleep
    return time_batches(rounds, [&] { return commands->idle_ns(rounds.iterations * idle_iteration); });
  }));
  if (all.size() > 1) all.back().baseline = 0;
  for (Measurement& one : all) {
    one.most_iterations = 20;
    one.settings.emplace_back("poll_us", static_cast<std::uint64_t>(poll_us));
  }
  return all;
}

std::vector<Case> all_cases() {
  const char* const of_host = method_of(EngineKind::host);
  std::vector<Case> all = {{"command_load", of_host, false, prepare_round_trips},
                           {"command_leases", method_of(EngineKind::device), false, prepare_leases},
                           {"engine_cpu", of_host, false, prepare_cpu_time},
                           {"engine_idle", of_host, false, prepare_idle}};
  for (const Shape& shape : latency_shapes) all.push_back(latency_of(shape));
  for (const Shape& shape : rate_shapes) all.push_back(rate_of(shape));
  return all;
}

const ListedCases cases(Command::methods, all_cases());

/// The shape that is compared with the rates of adapters' rings in GPU memory.
constexpr Shape beside_rings{64, 1, Heap::symmetric, false, EngineKind::device};
const ListedCases beside_adapters(Command::adapters, {rate_of(beside_rings)});

}  // namespace

}  // namespace beeline::bench::commands_cases
