// SPDX-License-Identifier: Apache-2.0
/// @file
/// The kernel posts commands, which an engine carries out: host threads for proxy/copy_engine/signal, a block of the
/// device for proxy/peer/signal. Measures ping-pong, one way, and a command's own round trip between a kernel and its
/// engine, which is compared with a bare thread that answers a flag.

#include <array>

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "cases/bare_answers.hpp"
#include "cases/cases.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_copy.hpp"
#include "peers/bare_ping_pong.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench::posts_cases {

namespace {

constexpr const char* method_of(EngineKind engine) {
  return engine == EngineKind::host ? "proxy/copy_engine/signal" : "proxy/peer/signal";
}

struct PostedMessage {
  std::byte* destination;
  const std::byte* source;
  std::uint64_t bytes;
  std::uint64_t* arrived;
  CommandQueue queue;
};

struct PostedPingPong {
  static constexpr bool by_both = true;
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, PostedMessage message) const {
    if (grid.block().thread_rank() != 0) return;
    const Thread one{};
    time_rounds(one, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            return post_put_signal(one, ctx, message.destination, message.source, message.bytes, message.arrived,
                                   sequence, loop.peer, message.queue) == Status::ok;
          },
          [&] { return wait(one, ctx, message.arrived, Compare::greater_equal, sequence, loop.peer) == Status::ok; });
    });
  }
};

/// Posts message after message, with some in flight at a time; ends when all have arrived.
struct PostedFlood {
  static constexpr bool by_both = false;
  static constexpr std::uint64_t bytes_in_flight = 8 << 20;
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, PostedMessage message) const {
    if (grid.block().thread_rank() != 0) return;
    const Thread one{};
    const std::uint64_t in_flight = message.bytes >= bytes_in_flight ? 1 : bytes_in_flight / message.bytes;
    time_rounds(one, loop, [&](std::uint64_t sequence) {
      if (post_put(one, ctx, message.destination, message.source, message.bytes, loop.peer, message.queue) !=
          Status::ok)
        return false;
      return sequence % in_flight != 0 || quiet(one, ctx, message.queue) == Status::ok;
    });
    static_cast<void>(quiet(one, ctx, message.queue));
  }
};

/// Device engines book multiprocessors: if ranks share a GPU, none may be left for their kernels.
Bench& with_room(Bench& bench, EngineKind engine) {
  const World& world = bench.world();
  require(engine == EngineKind::host || !world.device().is_gpu() || world.ranks_on_device() == 1, Status::unavailable,
          "the device engines of ranks that share a GPU leave their kernels no multiprocessors");
  return bench;
}

struct State {
  State(Bench& bench_in, std::uint64_t bytes, EngineKind engine)
      : bench(with_room(bench_in, engine)), buffers(std::make_shared<MessageBuffers>(bench, bytes)),
        arrived(bench.world(), 1), queues(bench.world(), 1, {.engine = engine}), timed(bench) {}

  template <class Kernel>
  std::vector<double> time(Rounds rounds) {
    return timed.run(single_thread(bench).threads, Kernel::by_both ? bench.paired() : bench.leads(), rounds, Kernel{},
                     PostedMessage{buffers->destination(), buffers->source(), buffers->bytes(), &arrived.data()->value,
                                   queues.channel().queue(0)});
  }

  Bench& bench;
  std::shared_ptr<MessageBuffers> buffers;
  SymmetricArray<PaddedWord> arrived;
  CommandQueues queues;
  TimedKernel timed;
};

template <class Kernel, Receivers receivers, EngineKind engine>
std::vector<Measurement> prepare_messages(Bench& bench, std::uint64_t bytes) {
  bench.require_reach_of_engines(receivers == Receivers::both);
  const std::shared_ptr<State> state = std::make_shared<State>(bench, bytes, engine);
  std::vector<Measurement> all;
  all.push_back(message_measurement(bench, state->buffers, receivers, method_of(engine),
                                    [=](Rounds rounds) { return state->time<Kernel>(rounds); }));
  all.back().settings = single_thread(bench).settings();
  return all;
}

/// The rank whose memory receives a word: this rank or the other.
enum class WordTo { own, other };
constexpr const char* name_of(WordTo to) { return to == WordTo::own ? "own" : "other"; }

/// Puts eight bytes, and waits until they have arrived.
struct PostedWord {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* word,
                                      CommandQueue queue) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return post_put(Thread{}, ctx, word, &sequence, 1, ctx.rank, queue) == Status::ok &&
             quiet(Thread{}, ctx, queue) == Status::ok;
    });
  }
};

/// Puts eight bytes twice, the second after the first, and waits until both have arrived.
struct PostedWords {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* word,
                                      CommandQueue queue, WordTo first, WordTo second) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      for (const WordTo to : {first, second}) {
        const std::uint32_t rank = to == WordTo::own ? ctx.rank : loop.peer;
        if (post_put(Thread{}, ctx, word, &sequence, 1, rank, queue) != Status::ok) return false;
      }
      return quiet(Thread{}, ctx, queue) == Status::ok;
    });
  }
};

struct CommandState {
  ///   heap  of the answered words and the put words; a word in GPU memory is written by a stream
  CommandState(Bench& bench_in, Heap heap_in, EngineKind engine)
      : bench(with_room(bench_in, engine)), heap(heap_in), words(bench.world(), 3, heap),
        asked(bench.world(), 2, Heap::pinned), queues(bench.world(), 1, {.engine = engine}), timed(bench),
        answering(bench.world().make_stream()) {}

  [[nodiscard]] std::uint64_t* word(std::size_t index) const { return &words.data()[index].value; }
  ///   as_engine  the stream stores the same as an engine's stream: a word, then the word that the kernel waits for,
  ///              then a word for the CPU
  std::vector<double> time_bare(Rounds rounds, bool as_engine) {
    const std::uint64_t start = timed.last();
    BareWord(asked.data()->value).store(start, std::memory_order_relaxed);
    bench.world().copy(word(1), &start, sizeof start);
    const std::array all{word(0), word(1), &asked.data()[1].value};
    const BareAnswers answers(bench.world(), &asked.data()->value, start, [=, this](std::uint64_t value) {
      if (heap == Heap::pinned)
        BareWord(*word(1)).store(value, std::memory_order_release);
      else if (as_engine)
        bare_writes(*answering, all, value);
      else
        bare_write(*answering, word(1), value);
    });
    return timed.run(single_thread(bench).threads, bench.leads(), rounds, BareQuestions{}, &asked.data()->value,
                     word(1));
  }
  std::vector<double> time_posted(Rounds rounds) {
    return timed.run(single_thread(bench).threads, bench.leads(), rounds, PostedWord{}, word(2),
                     queues.channel().queue(0));
  }
  std::vector<double> time_two(Rounds rounds, WordTo first, WordTo second) {
    return timed.run(single_thread(bench).threads, bench.leads(), rounds, PostedWords{}, word(2),
                     queues.channel().queue(0), first, second);
  }
  bool is_complete(std::size_t index) const {
    std::uint64_t now = 0;
    bench.world().copy(&now, word(index), sizeof now);
    return !bench.leads() || now == timed.last();
  }
  /// Collective. Whether the words of the last rounds are at their destinations.
  bool have_come(WordTo first, WordTo second) {
    bench.world().barrier();
    const WordTo mine = bench.leads() ? WordTo::own : WordTo::other;
    if (!bench.paired() || (first != mine && second != mine)) return true;
    std::uint64_t now = 0;
    bench.world().copy(&now, word(2), sizeof now);
    return now == timed.last();
  }

  Bench& bench;
  Heap heap;
  SymmetricArray<PaddedWord> words, asked;
  CommandQueues queues;
  TimedKernel timed;
  std::unique_ptr<Stream> answering;
};

/// The cost of ordering two words: if they go to different GPUs, an engine's thread that stores them waits after the
/// first.
template <class Add>
void add_two_words(std::vector<Measurement>& all, const std::shared_ptr<CommandState>& state, const char* method,
                   Add add) {
  for (const auto& [first, second] : {std::pair{WordTo::own, WordTo::own}, std::pair{WordTo::other, WordTo::other},
                                      std::pair{WordTo::other, WordTo::own}, std::pair{WordTo::own, WordTo::other}}) {
    const auto time = [=, a = first, b = second](Rounds rounds) { return state->time_two(rounds, a, b); };
    add(method, 2, time);
    all.back().verify = [=, a = first, b = second](std::uint64_t) {
      static_cast<void>(time(Rounds{}));
      return state->have_come(a, b);
    };
    all.back().settings.emplace_back("first", name_of(first));
    all.back().settings.emplace_back("second", name_of(second));
  }
}

std::vector<Measurement> prepare_command(Bench& bench, EngineKind engine) {
  const char* const method = method_of(engine);
  std::vector<Measurement> all;
  for (const Heap heap : {Heap::pinned, Heap::symmetric}) {
    if (heap == Heap::symmetric && !bench.world().device().is_gpu()) continue;  // host ranks: one memory
    const auto state = std::make_shared<CommandState>(bench, heap, engine);
    const auto add = [&](const char* name, std::size_t word, auto time) {
      Measurement measurement{.operation = "command", .method = name, .bytes = sizeof(std::uint64_t)};
      measurement.settings = single_thread(bench).settings();
      measurement.settings.emplace_back("memory", heap == Heap::pinned ? "pinned" : "device");
      measurement.verify = [=](std::uint64_t) {
        static_cast<void>(time(Rounds{}));
        return state->is_complete(word);
      };
      measurement.time = time;
      all.push_back(std::move(measurement));
    };
    if (heap == Heap::symmetric && engine == EngineKind::host) {
      add("bare/two_flags", 1, [=](Rounds rounds) { return state->time_bare(rounds, true); });
      all.back().peer_of = method;
      all.back().settings.emplace_back("words", std::uint64_t{3});
    }
    add("bare/two_flags", 1, [=](Rounds rounds) { return state->time_bare(rounds, false); });
    all.back().peer_of = method;
    add(method, 2, [=](Rounds rounds) { return state->time_posted(rounds); });
    all.back().baseline = all.size() - 2;
    if (heap == Heap::symmetric && bench.world().size() > 1) add_two_words(all, state, method, add);
  }
  return all;
}

template <class Kernel, Receivers receivers, EngineKind engine>
Case messages(SizeRange sizes = {}) {
  return {receivers == Receivers::both ? "message" : "put", method_of(engine), true,
          prepare_messages<Kernel, receivers, engine>, sizes};
}
Case command(EngineKind engine) {
  return {"command", method_of(engine), false,
          [engine](Bench& bench, std::uint64_t) { return prepare_command(bench, engine); }};
}

const ListedCases latency_cases(Command::latency, {messages<PostedPingPong, Receivers::both, EngineKind::host>(),
                                                   messages<PostedPingPong, Receivers::both, EngineKind::device>(),
                                                   command(EngineKind::host), command(EngineKind::device)});
// Compared with adapters. A flood of short commands would end before its transfers.
constexpr SizeRange floods{64 << 10};
const ListedCases beside_adapters(Command::adapters,
                                  {messages<PostedPingPong, Receivers::both, EngineKind::host>(),
                                   messages<PostedPingPong, Receivers::both, EngineKind::device>(),
                                   messages<PostedFlood, Receivers::second, EngineKind::host>(floods),
                                   messages<PostedFlood, Receivers::second, EngineKind::device>(floods)});
const ListedCases bandwidth_cases(Command::bandwidth, {messages<PostedFlood, Receivers::second, EngineKind::host>(),
                                                       messages<PostedFlood, Receivers::second, EngineKind::device>()});

}  // namespace

}  // namespace beeline::bench::posts_cases
