// SPDX-License-Identifier: Apache-2.0
/// @file
/// Commands to an engine, of the host (proxy/copy_engine/signal) or of the device (proxy/peer/signal): round trips at
/// rest, under load and from one lease to the next, rates of many posting blocks by one to eight engine threads, the
/// engine's CPU time, and where the time of a round trip goes.

#include <algorithm>

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "cases/cases.hpp"
#include "harness/timed_grid.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench {

namespace {

constexpr const char* method_of(EngineKind engine) {
  return engine == EngineKind::host ? "proxy/copy_engine/signal" : "proxy/peer/signal";
}
constexpr unsigned block_threads = 32;  ///< of which the first posts
constexpr std::uint32_t most_blocks = 4096, most_queues = 64;

/// Times of round trips, which a kernel keeps.
struct Probe {
  std::uint64_t* round_trips;  ///< [count] nanoseconds
  std::uint64_t* posts;        ///< [count] of which so many to post
  std::uint32_t count;
  std::uint64_t rest_ns;  ///< before each
};

/// What a grid posts: words of 8 bytes.
struct Posting {
  BlockTimes* times;     ///< [blocks]
  std::uint64_t* words;  ///< [blocks] at the peer
  std::uint64_t* stop;   ///< set when the probe has ended
  CommandChannel channel;
  std::uint64_t first;        ///< the word of the first post
  std::uint32_t posts;        ///< of each block
  std::uint32_t peer;         ///< whose words change
  std::uint64_t interval_ns;  ///< between the posts of a block; 0: none
};

BEELINE_HOST_DEVICE inline bool post_word(const Context& ctx, const Posting& posting, std::uint32_t block,
                                          std::uint64_t value) {
  return post_put(Thread{}, ctx, &posting.words[block], &value, 1, posting.peer, posting.channel.queue(block)) ==
         Status::ok;
}

/// Every block posts as fast as it can, and waits until its words are there.
struct PostWords {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Posting posting) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint32_t block = grid.block_rank();
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < posting.posts; ++i)
      if (!post_word(ctx, posting, block, posting.first + i)) return;
    if (quiet(Thread{}, ctx, posting.channel.queue(block)) != Status::ok) return;
    posting.times[block] = {start, machine::clock_ns()};
  }
};

/// The first block's round trips, while the others post at their pace.
struct ProbeCommands {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Posting posting, Probe probe) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint32_t block = grid.block_rank();
    if (block == 0)
      probe_rounds(ctx, posting, probe);
    else
      load(ctx, posting, block);
  }

 private:
  static BEELINE_HOST_DEVICE void probe_rounds(const Context& ctx, const Posting& posting, const Probe& probe) {
    const std::uint32_t warm_up = probe.rest_ns == 0 ? 16 : 2;
    for (std::uint32_t i = 0; i < warm_up + probe.count; ++i) {
      rest(ctx, probe.rest_ns);
      const std::uint64_t start = machine::clock_ns();
      if (!post_word(ctx, posting, 0, posting.first + i)) break;
      const std::uint64_t posted = machine::clock_ns();
      if (quiet(Thread{}, ctx, posting.channel.queue(0)) != Status::ok) break;
      if (i < warm_up) continue;
      probe.round_trips[i - warm_up] = machine::clock_ns() - start;
      probe.posts[i - warm_up] = posted - start;
    }
    BareWord(*posting.stop).store(1, cuda::memory_order_release);
  }
  static BEELINE_HOST_DEVICE void rest(const Context& ctx, std::uint64_t ns) {
    const std::uint64_t end = machine::clock_ns() + ns;
    for (std::uint32_t poll = 0; ns != 0 && machine::clock_ns() < end; ++poll) machine::back_off(poll, ctx.polling);
  }
  static BEELINE_HOST_DEVICE void load(const Context& ctx, const Posting& posting, std::uint32_t block) {
    std::uint64_t next = machine::clock_ns(), value = posting.first;
    for (std::uint32_t poll = 0; BareWord(*posting.stop).load(cuda::memory_order_relaxed) == 0; ++poll) {
      if (machine::clock_ns() < next) {
        machine::back_off(poll, ctx.polling);
        continue;
      }
      next += posting.interval_ns;
      if (!post_word(ctx, posting, block, value++)) return;
    }
    static_cast<void>(quiet(Thread{}, ctx, posting.channel.queue(block)));
  }
};

/// Posts, works, and waits.
struct PostWorkWait {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Posting posting) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < posting.posts; ++i) {
      if (!post_word(ctx, posting, 0, posting.first + i)) return;
      for (const std::uint64_t end = machine::clock_ns() + posting.interval_ns; machine::clock_ns() < end;)
        machine::back_off(0, ctx.polling);
      if (quiet(Thread{}, ctx, posting.channel.queue(0)) != Status::ok) return;
    }
    posting.times[0] = {start, machine::clock_ns()};
  }
};

struct Shape {
  std::uint32_t blocks = 1;
  int engine_threads = 1;
  Heap heap = Heap::pinned;  ///< of the words
  bool is_timed = false;     ///< the engine keeps the times of its parts
  EngineKind engine = EngineKind::host;

  [[nodiscard]] CommandQueueOptions options() const {
    if (engine == EngineKind::device) return {.engine = engine};
    return {.engine_threads = engine_threads, .is_timed = is_timed};
  }
};

/// Rank 0 posts words to rank 1, by an engine of its own.
class Commands {
 public:
  Commands(Bench& bench, const Shape& shape)
      : bench_(bench), shape_(shape), words_(bench.world(), shape.blocks, shape.heap), stop_(bench.world(), 1),
        times_(bench.world(), shape.blocks), round_trips_(bench.world(), most_probes),
        posts_(bench.world(), most_probes),
        queues_(bench.world(), std::min(shape.blocks, most_queues), shape.options()) {}

  [[nodiscard]] const CommandQueues& queues() const { return queues_; }
  [[nodiscard]] const char* method() const { return method_of(shape_.engine); }

  /// Collective. Nanoseconds of `posts` posts of each block.
  double rate_ns(std::uint32_t posts) { return run(PostWords{}, posts, 0); }

  /// Collective. CPU nanoseconds of the engine for so many rounds in which the kernel works so long.
  double engine_ns(std::uint32_t rounds, std::uint64_t work_ns) {
    const double before = queues_.statistics().cpu_s;
    static_cast<void>(run(PostWorkWait{}, rounds, work_ns));
    return (queues_.statistics().cpu_s - before) * 1e9;
  }

  struct RoundTrips {
    std::vector<std::uint64_t> whole, posting;  ///< nanoseconds, ascending
  };
  /// Collective. Round trips of the first block while the others post so often.
  ///   rest_ns  before each
  RoundTrips probe(std::uint64_t interval_ns, std::uint64_t rest_ns = 0) {
    World& world = bench_.world();
    const std::uint64_t running = 0;
    world.copy(stop_.data(), &running, sizeof running);
    world.barrier();
    RoundTrips found;
    if (bench_.leads()) {
      const std::uint32_t count = rest_ns == 0 ? most_probes : resting_probes;
      const Probe probe{round_trips_.data(), posts_.data(), count, rest_ns};
      launch(world, {.blocks = shape_.blocks, .threads = block_threads, .waits = true}, ProbeCommands{},
             posting(0, interval_ns), probe);
      world.synchronize();
      found = {read(round_trips_, count), read(posts_, count)};
    }
    world.barrier();
    return found;
  }

  /// Collective. Whether the last words of the last `rate_ns` have arrived.
  bool have_arrived() {
    bench_.world().barrier();
    if (bench_.world().rank() != 1) return true;
    std::vector<std::uint64_t> now(shape_.blocks);
    bench_.world().copy(now.data(), words_.data(), now.size() * sizeof now[0]);
    return std::all_of(now.begin(), now.end(), [&](std::uint64_t word) { return word == next_ - 1; });
  }

  [[nodiscard]] Settings settings() const {
    return {{"blocks", std::uint64_t{shape_.blocks}},
            {"queues", std::uint64_t{queues_.channel().queues}},
            {"engine_threads", static_cast<std::uint64_t>(shape_.options().engine_threads)},
            {"memory", shape_.heap == Heap::pinned ? "pinned" : "device"}};
  }

 private:
  static constexpr std::uint32_t most_probes = 2000, resting_probes = 20;

  [[nodiscard]] Posting posting(std::uint32_t posts, std::uint64_t interval_ns) const {
    return {times_.data(), words_.data(), stop_.data(), queues_.channel(), next_, posts, 1, interval_ns};
  }
  template <class Kernel>
  double run(Kernel kernel, std::uint32_t posts, std::uint64_t interval_ns) {
    World& world = bench_.world();
    world.barrier();
    const Posting wanted = posting(posts, interval_ns);
    next_ += posts;
    if (!bench_.leads()) return 0;
    launch(world, {.blocks = shape_.blocks, .threads = block_threads}, kernel, wanted);
    world.synchronize();
    std::vector<BlockTimes> blocks(shape_.blocks);
    world.copy(blocks.data(), times_.data(), blocks.size() * sizeof blocks[0]);
    BlockTimes whole = blocks.front();
    for (const BlockTimes& block : blocks) whole = {std::min(whole.start, block.start), std::max(whole.end, block.end)};
    return static_cast<double>(whole.end - whole.start);
  }
  std::vector<std::uint64_t> read(const SymmetricArray<std::uint64_t>& from, std::uint32_t count) {
    std::vector<std::uint64_t> all(count);
    bench_.world().copy(all.data(), from.data(), all.size() * sizeof all[0]);
    std::sort(all.begin(), all.end());
    return all;
  }

  Bench& bench_;
  Shape shape_;
  SymmetricArray<std::uint64_t> words_, stop_;
  SymmetricArray<BlockTimes> times_;
  SymmetricArray<std::uint64_t> round_trips_, posts_;
  CommandQueues queues_;
  std::uint64_t next_ = 1;
};

Measurement measurement_of(const std::shared_ptr<Commands>& commands, const char* operation,
                           std::function<std::vector<double>(Rounds)> time) {
  Measurement measurement{.operation = operation, .method = commands->method(), .bytes = sizeof(std::uint64_t)};
  measurement.settings = commands->settings();
  measurement.time = std::move(time);
  measurement.verify = [=](std::uint64_t) {
    static_cast<void>(commands->rate_ns(10));
    return commands->have_arrived();
  };
  return measurement;
}

/// The kernel's own clock says how long each took, so that a batch is a launch, and one sample the quantile of it.
Measurement quantile_of(const std::shared_ptr<Commands>& commands, const char* operation, double quantile,
                        std::uint64_t interval_ns, const char* load, std::uint64_t rest_ns = 0) {
  Measurement measurement = measurement_of(commands, operation, [=](Rounds rounds) {
    return time_batches(rounds, [&] {
      const std::vector<std::uint64_t> all = commands->probe(interval_ns, rest_ns).whole;
      return all.empty() ? 0.0 : static_cast<double>(all[static_cast<std::size_t>(quantile * (all.size() - 1))]);
    });
  });
  measurement.most_iterations = 1;
  measurement.settings.emplace_back("load", load);
  return measurement;
}

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
