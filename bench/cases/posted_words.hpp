// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Words that kernels post to an engine: their round trips, and their rate.

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "harness/measurement.hpp"
#include "harness/timed_grid.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench {

constexpr const char* method_of(EngineKind engine) {
  return engine == EngineKind::host ? "proxy/copy_engine/signal" : "proxy/peer/signal";
}
constexpr unsigned block_threads = 32;  ///< of which the first posts
constexpr std::uint32_t most_blocks = 4096, most_queues = 64, most_service_blocks = 4;

/// The queues of one engine or several. A block posts to one of them.
struct Engines {
  CommandQueuesView channels[most_service_blocks];
  std::uint32_t count;

  [[nodiscard]] BEELINE_HOST_DEVICE CommandQueue queue(std::uint32_t block) const {
    return count == 1 ? channels[0].queue(block) : channels[block % count].queue(block / count);
  }
};

/// Times of round trips, which a kernel keeps.
struct Probe {
  std::uint64_t* round_trips;  ///< [count] nanoseconds
  std::uint64_t* posts;        ///< [count] nanoseconds of the posts alone
  std::uint32_t count;
  std::uint64_t rest_ns;  ///< before each
};

/// Destination of a block's words. Each block has its own two cache lines, which CPUs fetch together, since several
/// threads may store words.
struct alignas(128) BlockWord {
  std::uint64_t value;
};

/// What a grid posts: words of 8 bytes.
struct Posting {
  BlockTimes* times;    ///< [blocks]
  BlockWord* words;     ///< [blocks] at the peer
  std::uint64_t* stop;  ///< set when the probe has ended
  Engines engines;
  std::uint64_t first;        ///< the word of the first post
  std::uint32_t posts;        ///< of each block
  std::uint32_t peer;         ///< whose words change
  std::uint64_t interval_ns;  ///< between the posts of a block; 0: none
};

BEELINE_HOST_DEVICE inline bool post_word(const Context& ctx, const Posting& posting, std::uint32_t block,
                                          std::uint64_t value) {
  return post_put(Thread{}, ctx, &posting.words[block].value, &value, 1, posting.peer, posting.engines.queue(block)) ==
         Status::ok;
}

/// Every block posts as fast as it can, and waits until its words are there.
struct PostWords {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const Posting& posting) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint32_t block = grid.block_rank();
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < posting.posts; ++i)
      if (!post_word(ctx, posting, block, posting.first + i)) return;
    if (quiet(Thread{}, ctx, posting.engines.queue(block)) != Status::ok) return;
    posting.times[block] = {start, machine::clock_ns()};
  }
};

/// The first block's round trips, while the other blocks post at intervals.
struct ProbeCommands {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const Posting& posting, Probe probe) const {
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
      if (probe.rest_ns != 0) rest(ctx, probe.rest_ns);
      const std::uint64_t start = machine::clock_ns();
      if (!post_word(ctx, posting, 0, posting.first + i)) break;
      const std::uint64_t posted = machine::clock_ns();
      if (quiet(Thread{}, ctx, posting.engines.queue(0)) != Status::ok) break;
      if (i < warm_up) continue;
      probe.round_trips[i - warm_up] = machine::clock_ns() - start;
      probe.posts[i - warm_up] = posted - start;
    }
    BareWord(*posting.stop).store(1, std::memory_order_release);
  }
  static BEELINE_HOST_DEVICE void load(const Context& ctx, const Posting& posting, std::uint32_t block) {
    std::uint64_t next = machine::clock_ns(), value = posting.first;
    for (std::uint32_t poll = 0; BareWord(*posting.stop).load(std::memory_order_relaxed) == 0; ++poll) {
      if (machine::clock_ns() < next) {
        machine::back_off(poll, ctx.polling);
        continue;
      }
      next += posting.interval_ns;
      if (!post_word(ctx, posting, block, value++)) return;
    }
    static_cast<void>(quiet(Thread{}, ctx, posting.engines.queue(block)));
  }
};

/// All blocks post a word at the same time, again and again, and each waits until its word is there.
struct PostTogether {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const Posting& posting, Probe probe) const {
    const std::uint32_t block = grid.block_rank();
    for (std::uint32_t i = 0; i < posting.posts; ++i) {
      if (grid.sync(ctx) != Status::ok) return;
      if (grid.block().thread_rank() != 0) continue;
      const std::uint64_t start = machine::clock_ns();
      if (!post_word(ctx, posting, block, posting.first + i)) return;
      const std::uint64_t posted = machine::clock_ns();
      if (quiet(Thread{}, ctx, posting.engines.queue(block)) != Status::ok) return;
      probe.round_trips[i * grid.blocks() + block] = machine::clock_ns() - start;
      probe.posts[i * grid.blocks() + block] = posted - start;
    }
  }
};

/// Posts, works, and waits.
struct PostWorkWait {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const Posting& posting) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < posting.posts; ++i) {
      if (!post_word(ctx, posting, 0, posting.first + i)) return;
      for (const std::uint64_t end = machine::clock_ns() + posting.interval_ns; machine::clock_ns() < end;)
        machine::back_off(0, ctx.polling);
      if (quiet(Thread{}, ctx, posting.engines.queue(0)) != Status::ok) return;
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
  std::uint32_t service_blocks = 1;  ///< of the device, with an engine each

  ///   posts  whether this rank posts; elsewhere an engine's threads would only spin beside those that work
  [[nodiscard]] CommandQueueOptions options(bool posts) const {
    if (engine == EngineKind::device) return {.engine = engine};
    return {.engine_threads = posts ? engine_threads : 1, .is_timed = is_timed};
  }
};

/// Other work of the leading rank's device during round trips: `begin(stop)` starts it, until `*stop` is 1; the kernel
/// that posts runs on `stream` (nullptr: the default).
struct Beside {
  std::function<void(const std::uint64_t* stop)> begin{};
  Stream* stream = nullptr;
};

/// Rank 0 posts words to rank 1, by an engine of its own.
class Commands {
 public:
  Commands(Bench& bench, const Shape& shape)
      : bench_(bench), shape_(shape), words_(bench.world(), shape.blocks, shape.heap), stop_(bench.world(), 1),
        times_(bench.world(), shape.blocks),
        round_trips_(bench.world(), std::max(most_probes, rounds_together * shape.blocks)),
        posts_(bench.world(), round_trips_.count()) {
    for (std::uint32_t i = 0; i < shape.service_blocks; ++i)
      queues_.push_back(std::make_unique<CommandQueues>(
          bench.world(), (std::min(shape.blocks, most_queues) + shape.service_blocks - 1) / shape.service_blocks,
          shape.options(bench.leads())));
  }

  /// Of the first engine.
  [[nodiscard]] const CommandQueues& queues() const { return *queues_.front(); }
  [[nodiscard]] const char* method() const { return method_of(shape_.engine); }
  /// Destination of the blocks' words at the peer.
  [[nodiscard]] BlockWord* words_there() const { return bench_.world().at(words_.data(), 1); }

  /// Collective. Nanoseconds of `posts` posts of each block.
  double rate_ns(std::uint32_t posts) { return run(PostWords{}, posts, 0); }

  /// Collective. CPU nanoseconds of the engine for `rounds` rounds, in each of which the kernel works for `work_ns`.
  double engine_ns(std::uint32_t rounds, std::uint64_t work_ns) {
    const double before = queues().statistics().cpu_s;
    static_cast<void>(run(PostWorkWait{}, rounds, work_ns));
    return (queues().statistics().cpu_s - before) * 1e9;
  }

  /// CPU nanoseconds of the engine in `time` without a command.
  [[nodiscard]] double idle_ns(std::chrono::milliseconds time) const {
    const double before = queues().statistics().cpu_s;
    std::this_thread::sleep_for(time);
    return (queues().statistics().cpu_s - before) * 1e9;
  }

  struct RoundTrips {
    std::vector<std::uint64_t> whole, posting;  ///< nanoseconds, ascending
  };
  /// Collective. Round trips of the first block, while each other block posts every `interval_ns`.
  ///   rest_ns  before each
  RoundTrips probe(std::uint64_t interval_ns, std::uint64_t rest_ns = 0, const Beside& beside = {}) {
    World& world = bench_.world();
    const std::uint64_t running = 0;
    world.copy(stop_.data(), &running, sizeof running);
    world.barrier();
    RoundTrips found;
    if (bench_.leads()) {
      const std::uint32_t count = rest_ns == 0 ? most_probes : resting_probes;
      const Probe probe{round_trips_.data(), posts_.data(), count, rest_ns};
      if (beside.begin) beside.begin(stop_.data());
      launch(world, {.blocks = shape_.blocks, .threads = block_threads, .waits = true, .stream = beside.stream},
             ProbeCommands{}, posting(0, interval_ns), probe);
      world.synchronize(beside.stream != nullptr ? *beside.stream : world.stream());
      found = {read(round_trips_, count), read(posts_, count)};
    }
    world.barrier();
    return found;
  }

  /// Collective. Round trips of all blocks, which post at the same time.
  RoundTrips probe_together() {
    World& world = bench_.world();
    world.barrier();
    RoundTrips found;
    if (bench_.leads()) {
      const std::uint32_t count = rounds_together * shape_.blocks;
      launch(world, {.blocks = shape_.blocks, .threads = block_threads, .waits = true}, PostTogether{},
             posting(rounds_together, 0), Probe{round_trips_.data(), posts_.data(), count, 0});
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
    std::vector<BlockWord> now(shape_.blocks);
    bench_.world().copy(now.data(), words_.data(), now.size() * sizeof now[0]);
    return std::all_of(now.begin(), now.end(), [&](const BlockWord& word) { return word.value == next_ - 1; });
  }

  [[nodiscard]] Settings settings() const {
    Settings settings{{"blocks", std::uint64_t{shape_.blocks}},
                      {"queues", std::uint64_t{queues().channel().queues} * shape_.service_blocks},
                      {"engine_threads", static_cast<std::uint64_t>(shape_.options(true).engine_threads)},
                      {"memory", shape_.heap == Heap::pinned ? "pinned" : "device"}};
    if (shape_.service_blocks > 1) settings.emplace_back("service_blocks", std::uint64_t{shape_.service_blocks});
    return settings;
  }

 private:
  static constexpr std::uint32_t most_probes = 2000, resting_probes = 20, rounds_together = 8;

  [[nodiscard]] Posting posting(std::uint32_t posts, std::uint64_t interval_ns) const {
    Engines engines{};
    for (const auto& each : queues_) engines.channels[engines.count++] = each->channel();
    return {times_.data(), words_.data(), stop_.data(), engines, next_, posts, 1, interval_ns};
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
  SymmetricArray<BlockWord> words_;
  SymmetricArray<std::uint64_t> stop_;
  SymmetricArray<BlockTimes> times_;
  SymmetricArray<std::uint64_t> round_trips_, posts_;
  std::vector<std::unique_ptr<CommandQueues>> queues_;  ///< of each engine
  std::uint64_t next_ = 1;
};

inline Measurement measurement_of(const std::shared_ptr<Commands>& commands, const char* operation,
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

/// Round trips are timed by the kernel's clock: a batch is a launch, and its one sample is a quantile of the launch.
///   probe  returns the round trips of a launch, ascending
inline Measurement quantile_of(const std::shared_ptr<Commands>& commands, const char* operation, double quantile,
                               const char* load, const std::function<std::vector<std::uint64_t>()>& probe) {
  Measurement measurement = measurement_of(commands, operation, [=](Rounds rounds) {
    return time_batches(rounds, [&] {
      const std::vector<std::uint64_t> all = probe();
      return all.empty() ? 0.0 : static_cast<double>(all[static_cast<std::size_t>(quantile * (all.size() - 1))]);
    });
  });
  measurement.most_iterations = 1;
  measurement.settings.emplace_back("load", load);
  return measurement;
}
/// Quantile of the first block's round trips, while each other block posts every `interval_ns`.
inline Measurement quantile_of(const std::shared_ptr<Commands>& commands, const char* operation, double quantile,
                               std::uint64_t interval_ns, const char* load, std::uint64_t rest_ns = 0) {
  return quantile_of(commands, operation, quantile, load, [=] { return commands->probe(interval_ns, rest_ns).whole; });
}

}  // namespace beeline::bench
