// SPDX-License-Identifier: Apache-2.0
/// @file
/// triggered/copy_engine/signal: the host arms transfers beforehand, a kernel triggers them, and the engine or a
/// waiting stream carries them out. Measures ping-pong, one way, and a trigger's own round trip: from the trigger to
/// the signal that follows the fired operation, both in this rank's memory. It is compared with a waiting stream
/// without the library's triggers, with a stream that copies by a graph's conditional node (which could guard the
/// copy), and with a CPU thread or a resident block of the GPU that answers a flag by a copy.

#include "beeline/host/triggers.hpp"

#include "beeline/control/trigger.hpp"
#include "cases/bare_answers.hpp"
#include "cases/cases.hpp"
#include "cases/network_pair.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_grid.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_words.hpp"
#include "peers/conditional_copy.hpp"

namespace beeline::bench::triggers_cases {

namespace {

constexpr const char* method = "triggered/copy_engine/signal";
/// A loop's operations are armed before the loop starts: so many iterations that five batches fit the engine's table of
/// 4,096 operations, or a stream's 64.
constexpr bool is_engine(TriggeredBy by) { return by == TriggeredBy::engine || by == TriggeredBy::device_engine; }
constexpr std::uint32_t most_iterations(TriggeredBy by) { return is_engine(by) ? 800 : 12; }
struct BackEnd {
  TriggeredBy by;
  const char* name;
};
constexpr BackEnd back_ends[] = {{TriggeredBy::engine, "engine"},
                                 {TriggeredBy::device_engine, "device_engine"},
                                 {TriggeredBy::stream, "stream"},
                                 {TriggeredBy::guarded_stream, "guarded_stream"}};

struct TriggeredMessage {
  std::uint64_t* arrived;
  std::uint32_t awaited;  ///< the rank that sets `arrived`
  TriggerChannel channel;
};

struct TriggeredPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, TriggeredMessage message) const {
    if (grid.block().thread_rank() != 0) return;
    const Thread one{};
    time_rounds(one, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads, [&] { return trigger(one, ctx, message.channel, 0) == Status::ok; },
          [&] {
            return wait(one, ctx, message.arrived, Compare::greater_equal, sequence, message.awaited) == Status::ok;
          });
    });
  }
};

/// Message after message; waits until each has arrived.
struct TriggeredFlood {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, TriggeredMessage message) const {
    if (grid.block().thread_rank() != 0) return;
    const Thread one{};
    time_rounds(one, loop, [&](std::uint64_t) {
      return trigger(one, ctx, message.channel, 0) == Status::ok && quiet(one, ctx, message.channel, 0) == Status::ok;
    });
  }
};

/// The threads that trigger: one thread, a block as one, or each of its threads; the operation waits for all of them.
enum class Level { thread, block, all_threads };
constexpr const char* level_names[] = {"thread", "block", "all_threads"};

template <Level level>
struct TriggeredWord {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, TriggeredMessage message) const {
    const auto& block = grid.block();
    if (level == Level::thread && block.thread_rank() != 0) return;
    const auto rounds = [&](const auto& group) {
      time_rounds(group, loop, [&](std::uint64_t sequence) {
        Status status = Status::ok;
        if constexpr (level == Level::all_threads)
          status = trigger(Thread{}, ctx, message.channel, 0);
        else
          status = trigger(group, ctx, message.channel, 0);
        const Status waited = wait(group, ctx, message.arrived, Compare::greater_equal, sequence, message.awaited);
        return status == Status::ok && waited == Status::ok;
      });
    };
    if constexpr (level == Level::thread)
      rounds(Thread{});
    else
      rounds(block);
  }
};

/// Pause before each trigger that is timed individually: the streams are waiting by then.
constexpr std::uint64_t rest_ns = 30'000;
/// Pauses differ by up to this time. A waiting stream checks its count every few microseconds: pauses of equal length
/// would all end at the same point between two checks.
constexpr std::uint64_t rests_differ_ns = 10'007;

/// Times rounds, each after a pause that is not timed. `round(sequence)` returns whether it succeeded.
template <class Round>
BEELINE_HOST_DEVICE void time_after_rests(const Context& ctx, const Loop& loop, const Round& round) {
  time_parts(loop, [&](std::uint64_t sequence) -> std::uint64_t {
    rest(ctx, rest_ns + 3'701 * sequence % rests_differ_ns);
    const std::uint64_t start = machine::clock_ns();
    return round(sequence) ? machine::clock_ns() - start + 1 : 0;
  });
}

struct TriggeredAfterRest {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, TriggeredMessage message) const {
    if (grid.block().thread_rank() != 0) return;
    const Thread one{};
    time_after_rests(ctx, loop, [&](std::uint64_t sequence) {
      return trigger(one, ctx, message.channel, 0) == Status::ok &&
             wait(one, ctx, message.arrived, Compare::greater_equal, sequence, message.awaited) == Status::ok;
    });
  }
};

/// A put_signal to the peer, and the wait for the peer's own.
struct PutSignal {
  std::byte* destination;
  const std::byte* source;
  std::uint64_t bytes;
  std::uint64_t* arrived;
};

/// Fires a transfer inside this rank's memory, waits for it, and puts with a signal to the peer.
struct TriggerThenPutSignal {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, TriggeredMessage own,
                                      PutSignal put) const {
    if (grid.block().thread_rank() != 0) return;
    const Thread one{};
    time_rounds(one, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            return trigger(one, ctx, own.channel, 0) == Status::ok &&
                   wait(one, ctx, own.arrived, Compare::greater_equal, sequence, own.awaited) == Status::ok &&
                   put_signal(one, ctx, put.destination, put.source, put.bytes, put.arrived, sequence, loop.peer) ==
                       Status::ok;
          },
          [&] { return wait(one, ctx, put.arrived, Compare::greater_equal, sequence, loop.peer) == Status::ok; });
    });
  }
};

struct State {
  State(Bench& bench_in, std::uint64_t bytes, BackEnd back_end_in)
      : bench(bench_in), back_end(back_end_in), buffers(std::make_shared<MessageBuffers>(bench, bytes)),
        arrived(bench.world(), 2), triggers(bench.world(), {.by = back_end.by}), timed(bench) {}

  /// Arms the operations that the kernel triggers, round after round; a round is `each` triggers.
  template <class Kernel, class... Args>
  std::vector<double> time(Rounds rounds, bool takes_part, int target, unsigned threads, std::uint64_t each,
                           Args... args) {
    std::uint64_t* const signal = &arrived.data()->value;
    const std::uint64_t first = timed.last(), last = Loop{nullptr, first, rounds, 0, false}.last();
    ArmedOperation armed{};
    for (std::uint64_t round = first + 1; takes_part && round <= last; ++round)
      armed = triggers.arm(TriggeredOperation::put(buffers->destination(), buffers->source(), buffers->bytes(), target)
                               .and_signal(signal, round),
                           {.tag = 0, .threshold = triggered + (round - first) * each});
    if (takes_part) triggered += (last - first) * each;
    // This rank, if it triggers for itself, or the peer.
    const auto awaited = static_cast<std::uint32_t>(target);
    std::vector<double> times = timed.run(threads, takes_part, rounds, Kernel{},
                                          TriggeredMessage{signal, awaited, triggers.channel()}, args...);
    // A stream takes no more operations than the next loop arms; between nodes the last may not be over yet.
    if (takes_part) bench.require_ok(triggers.wait(armed), "an operation that was triggered");
    return times;
  }

  Bench& bench;
  const BackEnd back_end;
  std::shared_ptr<MessageBuffers> buffers;
  SymmetricArray<PaddedWord> arrived;  ///< by triggers, by puts
  Triggers triggers;
  TimedKernel timed;
  std::uint64_t triggered = 0;  ///< the tag: number of triggers by this rank
};

/// Adds to a count that a stream waits for, and waits for the signal after the copy.
template <bool rests>
struct BareTriggers {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* count,
                                      std::uint64_t* arrived) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    const auto round = [&](std::uint64_t sequence) {
      BareWord(*count).fetch_add(1, std::memory_order_release);
      return bare_poll<std::memory_order_acquire>(block, ctx, arrived, sequence);
    };
    if constexpr (rests)
      time_after_rests(ctx, loop, round);
    else
      time_rounds(Thread{}, loop, round);
  }
};

/// Waits, copies and stream writes, enqueued beforehand.
///   conditional  whether a graph copies, in a conditional node that checks whether it may
struct BareState {
  BareState(Bench& bench_in, std::uint64_t bytes, bool conditional)
      : bench(bench_in), buffers(bench, bytes), words(bench.world(), 2), forbidden(bench.world(), 1, Heap::pinned),
        timed(bench), stream(bench.world().make_stream()) {
    if (conditional)
      copy = std::make_unique<ConditionalCopy>(*stream, buffers.destination(), buffers.source(), buffers.bytes(),
                                               forbidden.data());
  }

  template <bool rests = false>
  std::vector<double> time(Rounds rounds) {
    const std::uint64_t first = timed.last(), last = Loop{nullptr, first, rounds, 0, false}.last();
    for (std::uint64_t round = first + 1; bench.leads() && round <= last; ++round) {
      stream->wait_signal(&words.data()[0].value, round);
      if (copy != nullptr)
        copy->launch();
      else
        stream->copy(buffers.destination(), buffers.source(), buffers.bytes());
      stream->write_signal(&words.data()[1].value, round);
    }
    std::vector<double> times = timed.run(single_thread(bench).threads, bench.leads(), rounds, BareTriggers<rests>{},
                                          &words.data()[0].value, &words.data()[1].value);
    bench.world().synchronize(*stream);
    return times;
  }

  Bench& bench;
  MessageBuffers buffers;
  SymmetricArray<PaddedWord> words;
  SymmetricArray<std::uint64_t> forbidden;
  TimedKernel timed;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<ConditionalCopy> copy;
};

/// A CPU thread that answers a flag by a copy and a stream write: the part of an engine, without the engine.
struct BareHostState {
  BareHostState(Bench& bench_in, std::uint64_t bytes)
      : bench(bench_in), buffers(bench, bytes), asked(bench.world(), 1, Heap::pinned), answered(bench.world(), 1),
        timed(bench), stream(bench.world().make_stream()) {}

  std::vector<double> time(Rounds rounds) {
    std::uint64_t* const signal = &answered.data()->value;
    const std::uint64_t start = timed.last();
    BareWord(asked.data()->value).store(start, std::memory_order_relaxed);
    const BareAnswers answers(bench.world(), &asked.data()->value, start, [&](std::uint64_t value) {
      bare_copy(*stream, buffers.destination(), buffers.source(), buffers.bytes());
      bare_write(*stream, signal, value);
    });
    return timed.run(single_thread(bench).threads, bench.leads(), rounds, BareQuestions{}, &asked.data()->value,
                     signal);
  }

  Bench& bench;
  MessageBuffers buffers;
  SymmetricArray<PaddedWord> asked, answered;
  TimedKernel timed;
  std::unique_ptr<Stream> stream;
};

/// The second block answers the first block's flag by a copy, followed by a flag: the part of a service block, without
/// queue, tags and leases.
struct BareService {
  static constexpr std::uint32_t blocks = 2, threads = 128;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, BlockTimes* times, std::uint64_t first,
                                      std::uint32_t rounds, PaddedWord* words, std::byte* to, const std::byte* from,
                                      std::uint64_t bytes) const {
    const auto& block = grid.block();
    const bool asks = grid.block_rank() == 0;
    if (asks && block.thread_rank() != 0) return;
    const std::uint64_t start = machine::clock_ns();
    for (std::uint64_t value = first; value < first + rounds; ++value) {
      if (asks) BareWord(words[0].value).store(value, std::memory_order_release);
      if (!bare_poll<std::memory_order_acquire>(block, ctx, &words[asks ? 1 : 0].value, value)) return;
      if (asks) continue;
      detail::copy_bytes(block, to, from, bytes);
      block.sync();
      if (block.thread_rank() == 0) BareWord(words[1].value).store(value, std::memory_order_release);
    }
    if (block.thread_rank() == 0) times[grid.block_rank()] = {start, machine::clock_ns()};
  }
};

struct BareBlockState {
  BareBlockState(Bench& bench_in, std::uint64_t bytes)
      : bench(bench_in), buffers(bench, bytes), words(bench.world(), 2), timed(bench, BareService::blocks) {}

  std::vector<double> time(Rounds rounds) {
    return time_batches(rounds, [&] {
      const std::uint64_t first = next;
      next += rounds.iterations;
      return timed.run({BareService::blocks, BareService::threads}, bench.leads(), BareService{}, timed.times(), first,
                       rounds.iterations, words.data(), buffers.destination(), buffers.source(), buffers.bytes());
    });
  }

  Bench& bench;
  MessageBuffers buffers;
  SymmetricArray<PaddedWord> words;
  TimedGrid timed;
  std::uint64_t next = 1;
};

template <class Kernel, Receivers receivers>
std::vector<Measurement> prepare_messages(Bench& bench, std::uint64_t bytes) {
  std::vector<Measurement> all;
  for (const BackEnd& back_end : back_ends) {
    if (!is_engine(back_end.by) && receivers != Receivers::both) continue;  // this back end's kernels have no `quiet`
    auto state = std::make_shared<State>(bench, bytes, back_end);
    all.push_back(message_measurement(bench, state->buffers, receivers, method, [=, &bench](Rounds rounds) {
      const bool takes_part = receivers == Receivers::both ? bench.paired() : bench.leads();
      return state->time<Kernel>(rounds, takes_part, static_cast<int>(bench.peer()), single_thread(bench).threads, 1);
    }));
    all.back().most_iterations = most_iterations(back_end.by);
    all.back().settings = single_thread(bench).settings();
    all.back().settings.emplace_back("back_end", back_end.name);
  }
  return all;
}

/// Whether the transfer has copied rank 0's own source.
bool is_copied(Bench& bench, MessageBuffers& buffers, std::uint64_t seed, const std::function<void()>& transfer) {
  buffers.refresh(seed);
  bench.world().barrier();
  transfer();
  if (!bench.leads()) return true;
  std::vector<std::byte> come(buffers.bytes());
  bench.world().copy(come.data(), buffers.destination(), come.size());
  return come == random_message(seed, bench.world().rank(), come.size());
}

template <Level level>
Measurement trigger_measurement(Bench& bench, const std::shared_ptr<State>& state, unsigned threads) {
  Measurement measurement{.operation = "trigger", .method = method, .bytes = state->buffers->bytes()};
  measurement.most_iterations = most_iterations(state->back_end.by);
  measurement.settings = {{"level", level_names[static_cast<int>(level)]},
                          {"back_end", state->back_end.name},
                          {"threads_per_block", std::uint64_t{threads}},
                          {"blocks", std::uint64_t{1}}};
  const auto time = [=, &bench](Rounds rounds) {
    return state->time<TriggeredWord<level>>(rounds, bench.leads(), bench.world().rank(), threads,
                                             level == Level::all_threads ? threads : 1);
  };
  measurement.time = time;
  measurement.verify = [=, &bench](std::uint64_t seed) {
    return is_copied(bench, *state->buffers, seed, [&] { static_cast<void>(time(Rounds{})); });
  };
  return measurement;
}

template <class State>
Measurement bare_measurement(Bench& bench, std::uint64_t bytes, const char* called,
                             const std::shared_ptr<State>& state) {
  Measurement measurement{.operation = "trigger", .method = called, .bytes = bytes, .peer_of = method};
  measurement.most_iterations = most_iterations(TriggeredBy::stream);
  measurement.settings = single_thread(bench).settings();
  measurement.time = [=](Rounds rounds) { return state->time(rounds); };
  measurement.verify = [=, &bench](std::uint64_t seed) {
    return is_copied(bench, state->buffers, seed, [&] { static_cast<void>(state->time(Rounds{})); });
  };
  return measurement;
}

std::vector<Measurement> prepare_triggers(Bench& bench, std::uint64_t bytes) {
  const unsigned one = single_thread(bench).threads, many = bench.world().device().is_gpu() ? 256 : one;
  const auto bare = [&](const char* called, const auto& state) {
    return bare_measurement(bench, bytes, called, state);
  };
  std::vector<Measurement> all{bare("bare/stream_wait", std::make_shared<BareState>(bench, bytes, false))};
  if (bench.world().device().is_gpu())
    all.push_back(bare("bare/conditional_node", std::make_shared<BareState>(bench, bytes, true)));
  all.push_back(bare("bare/host_copy", std::make_shared<BareHostState>(bench, bytes)));
  if (bench.world().device().is_gpu()) {
    all.push_back(bare("bare/resident_block", std::make_shared<BareBlockState>(bench, bytes)));
    all.back().most_iterations = most_iterations(TriggeredBy::device_engine);
  }
  for (const BackEnd& back_end : back_ends) {
    const auto state = std::make_shared<State>(bench, bytes, back_end);
    for (Measurement& each : std::vector{trigger_measurement<Level::thread>(bench, state, one),
                                         trigger_measurement<Level::block>(bench, state, many),
                                         trigger_measurement<Level::all_threads>(bench, state, many)}) {
      each.baseline = 0;
      all.push_back(std::move(each));
    }
  }
  return all;
}

/// One trigger by one thread while no other operation is in flight.
std::vector<Measurement> prepare_after_rests(Bench& bench, std::uint64_t bytes) {
  std::vector<Measurement> all;
  const auto add = [&](Measurement measurement, MessageBuffers& buffers, auto time) {
    measurement.operation = "trigger_after_rest";
    measurement.time = time;
    measurement.verify = [=, &bench, &buffers](std::uint64_t seed) {
      return is_copied(bench, buffers, seed, [&] { static_cast<void>(time(Rounds{})); });
    };
    measurement.settings.emplace_back("rest_us", rest_ns / 1000);
    all.push_back(std::move(measurement));
  };
  const auto bare = std::make_shared<BareState>(bench, bytes, false);
  add(bare_measurement(bench, bytes, "bare/stream_wait", bare), bare->buffers,
      [=](Rounds rounds) { return bare->time<true>(rounds); });
  const unsigned one = single_thread(bench).threads;
  for (const BackEnd& back_end : back_ends) {
    const auto state = std::make_shared<State>(bench, bytes, back_end);
    add(trigger_measurement<Level::thread>(bench, state, one), *state->buffers, [=, &bench](Rounds rounds) {
      return state->time<TriggeredAfterRest>(rounds, bench.leads(), bench.world().rank(), one, 1);
    });
    all.back().baseline = 0;
    all.back().most_iterations = most_iterations(TriggeredBy::stream);
  }
  return all;
}

/// Between nodes: the time from the trigger to the arrival at the peer. The peer method is a trigger inside this rank's
/// memory and a put_signal after it.
std::vector<Measurement> prepare_across_nodes(Bench& bench, std::uint64_t bytes) {
  require_two_nodes(bench);
  bench.require_alike();
  std::vector<Measurement> all;
  const unsigned threads = single_thread(bench).threads;
  const auto add = [&](const char* called, const BackEnd& back_end, const auto& buffers, auto time) {
    all.push_back(message_measurement(bench, buffers, Receivers::both, called, time));
    all.back().operation = "trigger";
    all.back().most_iterations = most_iterations(back_end.by);
    all.back().settings = {{"back_end", back_end.name}};
  };
  for (const BackEnd& back_end : back_ends) {
    if (!is_engine(back_end.by)) continue;  // a stream holds too few operations for a loop between nodes
    const auto own = std::make_shared<State>(bench, bytes, back_end),
               there = std::make_shared<State>(bench, bytes, back_end);
    add("trigger_then_put_signal", back_end, there->buffers, [=, &bench](Rounds rounds) {
      const PutSignal put{there->buffers->destination(), there->buffers->source(), bytes,
                          &own->arrived.data()[1].value};
      return own->time<TriggerThenPutSignal>(rounds, bench.paired(), bench.world().rank(), threads, 1, put);
    });
    all.back().peer_of = method;
    add(method, back_end, there->buffers, [=, &bench](Rounds rounds) {
      return there->time<TriggeredPingPong>(rounds, bench.paired(), static_cast<int>(bench.peer()), threads, 1);
    });
    all.back().baseline = all.size() - 2;
  }
  return all;
}

const ListedCases network_cases(Command::network, {{"trigger", method, true, prepare_across_nodes, {0, 4096}}});
const ListedCases latency_cases(Command::latency,
                                {{"message", method, true, prepare_messages<TriggeredPingPong, Receivers::both>},
                                 {"trigger", method, true, prepare_triggers},
                                 {"trigger_after_rest", method, true, prepare_after_rests}});
const ListedCases bandwidth_cases(Command::bandwidth,
                                  {{"put", method, true, prepare_messages<TriggeredFlood, Receivers::second>}});

}  // namespace

}  // namespace beeline::bench::triggers_cases
