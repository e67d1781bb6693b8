// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/peer/signal: how many messages per second many senders of one rank put, each with its own signal.
/// proxy/copy_engine/signal: the same by posts to one queue, and to one queue for each sender (up to 64).

#include <set>
#include <type_traits>

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "cases/cases.hpp"
#include "cases/put_flood.hpp"
#include "harness/group_choice.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench::put_signal_rate_cases {

namespace {

/// The library's message: a put with a signal by one thread, or by the block.
template <class Wanted>
struct LibraryPost {
  using Sender = Wanted;
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const Flood& burst, std::uint64_t sender,
                                      std::uint64_t sequence) const {
    const std::uint64_t offset = sender * burst.bytes;
    put_signal(group, ctx, burst.destination + offset, burst.source + offset, burst.bytes, &burst.arrived[sender].value,
               sequence, burst.peer);
  }
};

/// The minimum work for a message of 8 bytes.
struct BarePost {
  using Sender = Thread;
  std::byte* destination_there;
  PaddedWord* arrived_there;
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group&, const Context&, const Flood& burst, std::uint64_t sender,
                                      std::uint64_t sequence) const {
    bare_post(reinterpret_cast<std::uint64_t*>(destination_there) + sender,
              reinterpret_cast<const std::uint64_t*>(burst.source) + sender, &arrived_there[sender].value, sequence);
  }
};

/// One command, which carries the bytes if they fit.
struct EnginePost {
  using Sender = Thread;
  CommandQueuesView channel;
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const Flood& burst, std::uint64_t sender,
                                      std::uint64_t sequence) const {
    const std::uint64_t offset = sender * burst.bytes;
    const CommandQueue queue = channel.queue(static_cast<std::uint32_t>(sender));
    static_cast<void>(post_put_signal(group, ctx, burst.destination + offset, burst.source + offset, burst.bytes,
                                      &burst.arrived[sender].value, sequence, burst.peer, queue));
  }
};

template <class Post>
struct MessageBurst {
  Post post;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Flood burst) const {
    if (!pass(grid, ctx, burst, burst.first, burst.warm_up)) return;
    if (grid.sync(ctx) != Status::ok) return;
    const std::uint64_t start = machine::clock_ns();
    if (!pass(grid, ctx, burst, burst.first + burst.warm_up, burst.messages)) return;
    if (grid.block().thread_rank() == 0) burst.times[grid.block_rank()] = {start, machine::clock_ns()};
  }

 private:
  static constexpr bool by_threads = std::is_same_v<typename Post::Sender, Thread>;
  /// Threads of a block that poll for messages: more would only load the memory at which the messages arrive.
  static constexpr unsigned watchers = 32;

  template <class Grid>
  BEELINE_HOST_DEVICE bool pass(Grid& grid, const Context& ctx, const Flood& burst, std::uint64_t before,
                                std::uint32_t count) const {
    if (count == 0) return true;
    const std::uint64_t last = before + count;
    return burst.sends ? send(grid, ctx, burst, before, last) : receive(grid, ctx, burst, last);
  }

  template <class Grid>
  BEELINE_HOST_DEVICE bool send(Grid& grid, const Context& ctx, const Flood& burst, std::uint64_t before,
                                std::uint64_t last) const {
    const auto& block = grid.block();
    if constexpr (by_threads) {
      for (std::uint64_t sequence = before + 1; sequence <= last; ++sequence)
        post(Thread{}, ctx, burst, grid.thread_rank(), sequence);
    } else {
      for (std::uint64_t sequence = before + 1; sequence <= last; ++sequence)
        post(block, ctx, burst, grid.block_rank(), sequence);
    }
    return wait(block, ctx, &burst.acknowledged[grid.block_rank()].value, Compare::greater_equal, last, burst.peer) ==
           Status::ok;
  }

  template <class Grid>
  BEELINE_HOST_DEVICE bool receive(Grid& grid, const Context& ctx, const Flood& burst, std::uint64_t last) const {
    const auto& block = grid.block();
    const unsigned senders = by_threads ? block.size() : 1, step = block.size() < watchers ? block.size() : watchers;
    const PaddedWord* arrived = burst.arrived + std::uint64_t{senders} * grid.block_rank();
    Status status = Status::ok;
    if (block.thread_rank() < step)
      for (unsigned sender = block.thread_rank(); sender < senders && status == Status::ok; sender += step)
        status = wait(Thread{}, ctx, &arrived[sender].value, Compare::greater_equal, last, burst.peer);
    if (agree(block, status) != Status::ok) return false;
    signal(block, ctx, &burst.acknowledged[grid.block_rank()].value, last, burst.peer);
    return true;
  }
};

/// The senders of one measurement.
struct Senders {
  GridShape shape;
  GroupKind group;
  [[nodiscard]] std::uint64_t count() const {
    return group == GroupKind::thread ? std::uint64_t{shape.blocks} * shape.threads : shape.blocks;
  }
};

struct State {
  State(Bench& bench_in, std::uint64_t bytes_in, const Senders& senders_in)
      : bench(bench_in), bytes(bytes_in), senders(senders_in),
        buffers(std::make_shared<MessageBuffers>(bench, bytes * senders.count())), timed(bench, senders.shape.blocks),
        arrived(bench.world(), senders.count()), acknowledged(bench.world(), senders.shape.blocks) {}

  template <class Post>
  std::vector<double> time(Rounds rounds, Post post) {
    return time_batches(rounds, [&] {
      const Flood burst{timed.times(), arrived.data(), acknowledged.data(), buffers->destination(), buffers->source(),
                        bytes,         last,           rounds.iterations,   rounds.warm_up,         bench.peer(),
                        bench.leads()};
      last += rounds.warm_up + rounds.iterations;
      return timed.run(senders.shape, bench.paired(), MessageBurst<Post>{post}, burst);
    });
  }

  std::vector<double> time_library(Rounds rounds) {
    if (senders.group == GroupKind::thread) return time(rounds, LibraryPost<Thread>{});
    return time(rounds, LibraryPost<Block>{});
  }

  std::vector<double> time_posted(Rounds rounds, const CommandQueues& queues) {
    return time(rounds, EnginePost{queues.channel()});
  }

  std::vector<double> time_bare(Rounds rounds) {
    BarePost post{nullptr, nullptr};
    if (bench.leads()) post = {bench.world().at(buffers->destination(), 1), arrived.at(1)};
    return time(rounds, post);
  }

  Bench& bench;
  std::uint64_t bytes;
  Senders senders;
  std::shared_ptr<MessageBuffers> buffers;
  TimedGrid timed;
  SymmetricArray<PaddedWord> arrived, acknowledged;
  std::uint64_t last = 0;
};

/// Messages of up to two stores of 16 bytes are sent by single threads; larger messages by blocks with a thread for
/// each store, up to 512.
std::vector<Senders> senders_of(const Bench& bench, std::uint64_t bytes) {
  constexpr unsigned store_bytes = 16, most_threads = 512;
  std::vector<Senders> all;
  const auto add = [&]<class Post>(Post, GroupKind group, unsigned threads, bool every_size) {
    const std::vector<unsigned> sweep =
        block_sweep(bench, resident_everywhere<MessageBurst<Post>, Flood>(bench, threads));
    for (unsigned blocks : sweep)
      if (every_size || blocks == 1) all.push_back({{blocks, threads}, group});
  };
  const bool by_threads = bytes <= 2 * store_bytes;
  if (!bench.world().device().is_gpu()) {
    const auto team = static_cast<unsigned>(bench.world().config().host_threads);
    by_threads ? add(LibraryPost<Thread>{}, GroupKind::thread, team, true)
               : add(LibraryPost<Block>{}, GroupKind::host_team, team, true);
  } else if (by_threads) {
    for (unsigned threads : {1u, 32u, 256u}) add(LibraryPost<Thread>{}, GroupKind::thread, threads, threads == 256);
  } else {
    const std::uint64_t words = (bytes + store_bytes - 1) / store_bytes;
    const auto threads = static_cast<unsigned>(std::min<std::uint64_t>((words + 31) / 32 * 32, most_threads));
    add(LibraryPost<Block>{}, GroupKind::block, threads, true);
  }
  return all;
}

Measurement measurement_of(Bench& bench, std::shared_ptr<State> state, std::string method,
                           std::function<std::vector<double>(Rounds)> time) {
  Measurement measurement{.operation = "message_rate", .method = std::move(method), .bytes = state->bytes};
  measurement.unit = Unit::million_messages_per_second;
  measurement.most_iterations = 1'000'000;
  measurement.operations_per_iteration = static_cast<double>(state->senders.count());
  measurement.settings = GroupChoice{state->senders.group, state->senders.shape.threads}.settings();
  measurement.settings.back().second = std::uint64_t{state->senders.shape.blocks};
  measurement.settings.emplace_back("senders", state->senders.count());
  measurement.verify = verify_messages(bench, state->buffers, time, Receivers::second);
  measurement.time = std::move(time);
  return measurement;
}

/// Measurements of posts to one queue, and to one queue for each sender.
std::vector<Measurement> prepare_posts(Bench& bench, std::uint64_t bytes) {
  bench.require_alike();
  constexpr std::uint64_t most_queues_measured = 64;
  std::vector<Measurement> all;
  for (const Senders& senders : senders_of(bench, bytes)) {
    if (senders.group != GroupKind::thread) continue;
    auto state = std::make_shared<State>(bench, bytes, senders);
    for (const std::uint64_t count : std::set{std::uint64_t{1}, std::min(senders.count(), most_queues_measured)}) {
      auto queues = std::make_shared<CommandQueues>(bench.world(), static_cast<std::uint32_t>(count));
      all.push_back(measurement_of(bench, state, "proxy/copy_engine/signal",
                                   [=](Rounds rounds) { return state->time_posted(rounds, *queues); }));
      all.back().settings.emplace_back("queues", count);
    }
  }
  return all;
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  bench.require_alike();
  std::vector<Measurement> all;
  for (const Senders& senders : senders_of(bench, bytes)) {
    auto state = std::make_shared<State>(bench, bytes, senders);
    const bool one_word = bytes == sizeof(std::uint64_t);
    if (one_word) {
      all.push_back(
          measurement_of(bench, state, "bare/put_signal", [=](Rounds rounds) { return state->time_bare(rounds); }));
      all.back().peer_of = "device/peer/signal";
      all.back().stores_to_peer = true;
    }
    all.push_back(
        measurement_of(bench, state, "device/peer/signal", [=](Rounds rounds) { return state->time_library(rounds); }));
    if (one_word) all.back().baseline = all.size() - 2;
  }
  require(!all.empty(), Status::no_resource, "no block of senders could be resident on every rank");
  return all;
}

/// Message sizes for single threads.
constexpr SizeRange sizes_of_threads{0, 32};

const ListedCases rate_cases(Command::rate,
                             {{"message_rate", "device/peer/signal", true, prepare},
                              {"message_rate", "proxy/copy_engine/signal", true, prepare_posts, sizes_of_threads}});

}  // namespace

}  // namespace beeline::bench::put_signal_rate_cases
