// SPDX-License-Identifier: Apache-2.0
/// @file
/// The parts of the time between a kernel and its peer under each control: for a posted command, a triggered operation
/// and a task, by the clocks of both GPUs. Source: seed 003, the parts of its latencies.
///
///   poster   begins --- post --- posted ......................................... sees the end
///   target                              ... engine, transfer ... arrived ... completion
///            of a task:                 ... transfer, queue, start ... begins --- execution --- done ... completion

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "beeline/control/post.hpp"
#include "beeline/control/trigger.hpp"
#include "beeline/host/command_queues.hpp"
#include "beeline/host/tasks.hpp"
#include "beeline/host/triggers.hpp"
#include "cases/cases.hpp"
#include "harness/clock_offset.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench::control_parts_cases {

namespace {

constexpr unsigned threads = 32;            ///< per block; only the first one works
constexpr std::uint64_t rounds = 48;        ///< of a launch; at most 64 operations may be armed on a stream
constexpr std::uint32_t payload_words = 8;  ///< of a task: 64 bytes
constexpr const char* of_trigger = "triggered/copy_engine/signal";
constexpr const char* of_task = "task/peer/signal";
constexpr const char* method_of(EngineKind engine) {
  return engine == EngineKind::host ? "proxy/copy_engine/signal" : "proxy/peer/signal";
}

/// Times of a round, by the poster's clock.
struct PosterTimes {
  std::uint64_t begun, posted, ended;
};
/// Times of a round, by the target's clock.
struct TargetTimes {
  std::uint64_t begun, done;
};

/// The transfer of a round.
struct Message {
  std::byte* destination;
  const std::byte* source;
  std::uint64_t bytes;
  std::uint64_t* arrived;  ///< at the target; set to the round's number after the bytes
};

/// Methods of sending. `start` begins round `number`; `end` waits until the poster knows that the round is complete.
struct ByCommand {
  CommandQueue queue;
  Message message;

  BEELINE_HOST_DEVICE bool start(const Context& ctx, std::uint32_t peer, std::uint64_t number) const {
    return post_put_signal(Thread{}, ctx, message.destination, message.source, message.bytes, message.arrived, number,
                           peer, queue) == Status::ok;
  }
  BEELINE_HOST_DEVICE bool end(const Context& ctx, std::uint32_t, std::uint64_t) const {
    return quiet(Thread{}, ctx, queue) == Status::ok;
  }
};
struct ByTrigger {
  TriggerChannel triggers;
  bool has_end;  ///< false for streams, which do not notify kernels of the end

  BEELINE_HOST_DEVICE bool start(const Context& ctx, std::uint32_t, std::uint64_t) const {
    return trigger(Thread{}, ctx, triggers, 0) == Status::ok;
  }
  BEELINE_HOST_DEVICE bool end(const Context& ctx, std::uint32_t, std::uint64_t) const {
    return !has_end || quiet(Thread{}, ctx, triggers, 0) == Status::ok;
  }
};
/// Stores the payload and then a flag, without the library.
struct ByStores {
  std::uint64_t* there;  ///< [payload_words]
  std::uint64_t* flag;   ///< at the peer

  BEELINE_HOST_DEVICE bool start(const Context&, std::uint32_t, std::uint64_t number) const {
    for (std::uint32_t i = 0; i < payload_words; ++i) there[i] = number;
    BareWord(*flag).store(number, std::memory_order_release);
    return true;
  }
  BEELINE_HOST_DEVICE bool end(const Context&, std::uint32_t, std::uint64_t) const { return true; }
};

/// A task that records when it begins and when it has read its payload.
struct Note {
  static constexpr const char* name = "note";
  struct Arguments {
    std::uint64_t number;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() != 0) return;
    TargetTimes times{machine::clock_ns(), 0};
    const auto* const words = static_cast<const std::uint64_t*>(task.payload);
    std::uint64_t sum = 0;
    if (task.payload_bytes == payload_words * sizeof sum)
      for (std::uint32_t i = 0; i < payload_words; ++i) sum += words[i];
    const std::uint64_t number = task.as<Arguments>().number;
    times.done = machine::clock_ns() + (sum == payload_words * number ? 0 : 1);
    static_cast<TargetTimes*>(task.object)[number % rounds] = times;
  }
};
using Functions = TaskList<Note>;

struct ByTask {
  TaskChannel tasks;
  std::uint64_t* payload;  ///< [payload_words] in the poster's memory, the source of the message
  std::uint64_t* reply;

  BEELINE_HOST_DEVICE bool start(const Context& ctx, std::uint32_t peer, std::uint64_t number) const {
    for (std::uint32_t i = 0; i < payload_words; ++i) payload[i] = number;
    const Note::Arguments arguments{number};
    TaskPost post = task_of<Functions, Note>(arguments, peer);
    post.payload = payload, post.payload_bytes = payload_words * sizeof(std::uint64_t);
    post.reply = reply, post.reply_value = number, post.order = Order::relaxed;
    return post_task(Thread{}, ctx, tasks, post) == Status::ok;
  }
  BEELINE_HOST_DEVICE bool end(const Context& ctx, std::uint32_t peer, std::uint64_t number) const {
    return wait(Thread{}, ctx, reply, Compare::greater_equal, number, peer) == Status::ok;
  }
};

/// The poster. Each round begins when the target has recorded the previous one.
///   noted  set by the target; nullptr: the poster need not wait for it
template <class Way>
struct Send {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Way way, PosterTimes* times, std::uint64_t* noted,
                                      std::uint64_t first, std::uint32_t peer) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    for (std::uint64_t number = first; number < first + rounds; ++number) {
      PosterTimes now{machine::clock_ns(), 0, 0};
      if (!way.start(ctx, peer, number)) return;
      now.posted = machine::clock_ns();
      if (!way.end(ctx, peer, number)) return;
      now.ended = machine::clock_ns();
      times[number % rounds] = now;
      if (noted != nullptr && !bare_poll<std::memory_order_acquire>(block, ctx, noted, number)) return;
    }
  }
};

/// The target's kernel.
struct Receive {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* arrived, TargetTimes* times,
                                      std::uint64_t* noted, std::uint64_t first, std::uint32_t peer) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    for (std::uint64_t number = first; number < first + rounds; ++number) {
      if (!bare_poll<std::memory_order_acquire>(block, ctx, arrived, number)) return;
      const std::uint64_t now = machine::clock_ns();
      times[number % rounds] = {now, now};
      BareWord(*ctx.at(noted, peer)).store(number, std::memory_order_release);
    }
  }
};

/// Medians in nanoseconds.
struct Parts {
  double post = 0, way = 0, execution = 0, completion = 0, whole = 0;
};

double median_of(std::vector<double> all) {
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
  return all[all.size() / 2];
}

/// Runs rounds between ranks 0 and 1.
class Probe {
 public:
  explicit Probe(Bench& bench)
      : bench_(bench), clocks_(bench), poster_(bench.world(), rounds), target_(bench.world(), rounds),
        words_(bench.world(), 3), payload_(bench.world(), payload_words) {}

  [[nodiscard]] Bench& bench() const { return bench_; }
  [[nodiscard]] std::uint64_t* arrived() const { return &words_.data()[0].value; }
  [[nodiscard]] std::uint64_t* reply() const { return &words_.data()[2].value; }
  [[nodiscard]] std::uint64_t* payload() const { return payload_.data(); }
  [[nodiscard]] TargetTimes* target_times() const { return target_.data(); }
  /// Number of the next round, from 1.
  [[nodiscard]] std::uint64_t next() const { return next_; }

  /// Collective. Before the call, the data that ranks 0 and 1 need must be ready on them.
  ///   is_received  by a kernel of the target, which polls `arrived`; otherwise the target's tasks record the times
  template <class Way>
  Parts run(const Way& way, bool is_received) {
    World& world = bench_.world();
    const ClockOffset offset = clocks_.compare();
    world.barrier();
    std::uint64_t* const noted = &words_.data()[1].value;
    if (bench_.leads())
      launch(world, {.threads = threads, .waits = true}, Send<Way>{}, way, poster_.data(),
             is_received ? noted : nullptr, next_, bench_.peer());
    else if (bench_.paired() && is_received)
      launch(world, {.threads = threads, .waits = true}, Receive{}, arrived(), target_.data(), noted, next_,
             bench_.peer());
    world.synchronize();
    world.barrier();
    next_ += rounds;
    return parts_of(offset);
  }

 private:
  Parts parts_of(const ClockOffset& offset) {
    World& world = bench_.world();
    std::array<PosterTimes, rounds> poster;
    std::array<TargetTimes, rounds> target;
    world.copy(poster.data(), poster_.data(), sizeof poster);
    world.copy(target.data(), target_.data(), sizeof target);
    const auto all = world.allgather(std::as_bytes(std::span(target)));
    if (!bench_.leads()) return {};
    std::memcpy(target.data(), all[1].data(), sizeof target);
    // A part that ends before the preceding part ends counts as zero.
    const auto between = [](std::uint64_t from, std::uint64_t to) { return to > from ? double(to - from) : 0.0; };
    std::array<std::vector<double>, 5> found;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      const std::uint64_t begun = target[i].begun - static_cast<std::uint64_t>(offset.ns);
      const std::uint64_t done = target[i].done - static_cast<std::uint64_t>(offset.ns);
      const PosterTimes& mine = poster[i];
      const double parts[] = {between(mine.begun, mine.posted), between(mine.posted, begun), between(begun, done),
                              between(done, mine.ended), between(mine.begun, std::max(mine.ended, done))};
      for (std::size_t part = 0; part < found.size(); ++part) found[part].push_back(parts[part]);
    }
    return {median_of(found[0]), median_of(found[1]), median_of(found[2]), median_of(found[3]), median_of(found[4])};
  }

  Bench& bench_;
  Clocks clocks_;
  SymmetricArray<PosterTimes> poster_;
  SymmetricArray<TargetTimes> target_;
  SymmetricArray<PaddedWord> words_;  ///< arrived, noted, reply
  SymmetricArray<std::uint64_t> payload_;
  std::uint64_t next_ = 1;
};

/// The name of a part, which includes the preceding parts that cannot be measured separately.
struct PartName {
  const char* operation;
  double Parts::*value;
  const char* with = nullptr;
};

/// One measurement for each part under a control.
///   run  collective; returns the parts' times of some rounds
std::vector<Measurement> measurements_of(const Bench& bench, const char* method, std::uint64_t bytes,
                                         const Settings& settings, const std::vector<PartName>& parts,
                                         const std::function<Parts()>& run) {
  std::vector<Measurement> all;
  for (const PartName& part : parts) {
    Measurement measurement{.operation = part.operation, .method = method, .bytes = bytes, .most_iterations = 1};
    measurement.settings = settings;
    if (part.with != nullptr) measurement.settings.emplace_back("with", part.with);
    measurement.time = [=](Rounds times) { return time_batches(times, [&] { return run().*(part.value); }); };
    measurement.verify = [=, leads = bench.leads()](std::uint64_t) {
      const Parts found = run();
      return !leads || (found.whole > 0 && found.whole < 1e9);
    };
    all.push_back(std::move(measurement));
  }
  return all;
}

const std::vector<PartName> of_transfer{{"part_post", &Parts::post},
                                        {"part_transfer", &Parts::way, "engine"},
                                        {"part_completion", &Parts::completion},
                                        {"part_whole", &Parts::whole}};

constexpr std::uint64_t sizes[] = {8, 64 << 10};

struct Sent {
  Sent(Bench& bench, std::uint64_t bytes) : probe(bench), buffers(bench, bytes) {}
  [[nodiscard]] Message message() const {
    return {buffers.destination(), buffers.source(), buffers.bytes(), probe.arrived()};
  }
  Probe probe;
  MessageBuffers buffers;
};

std::vector<Measurement> prepare_commands(Bench& bench, EngineKind engine) {
  struct State : Sent {
    State(Bench& bench, std::uint64_t bytes, EngineKind engine)
        : Sent(bench, bytes), queues(bench.world(), 1, {.engine = engine}) {}
    CommandQueues queues;
  };
  std::vector<Measurement> all;
  for (const std::uint64_t bytes : sizes) {
    const auto state = std::make_shared<State>(bench, bytes, engine);
    for (Measurement& each : measurements_of(bench, method_of(engine), bytes, {{"target", "peer"}}, of_transfer, [=] {
           return state->probe.run(ByCommand{state->queues.channel().queue(0), state->message()}, true);
         }))
      all.push_back(std::move(each));
  }
  return all;
}

struct BackEnd {
  TriggeredBy by;
  const char* name;
};
constexpr BackEnd back_ends[] = {
    {TriggeredBy::engine, "engine"}, {TriggeredBy::device_engine, "device_engine"}, {TriggeredBy::stream, "stream"}};

std::vector<Measurement> prepare_triggers(Bench& bench, const BackEnd& back_end) {
  struct State : Sent {
    State(Bench& bench, std::uint64_t bytes, TriggeredBy by)
        : Sent(bench, bytes), triggers(bench.world(), {.by = by}) {}
    void arm(Bench& bench) {
      const int peer = static_cast<int>(bench.peer());
      for (std::uint64_t number = probe.next(); bench.leads() && number < probe.next() + rounds; ++number)
        triggers.arm(TriggeredOperation::put(buffers.destination(), buffers.source(), buffers.bytes(), peer)
                         .and_signal(probe.arrived(), number),
                     {.tag = 0, .threshold = number});
    }
    Triggers triggers;
  };
  const bool has_end = back_end.by != TriggeredBy::stream;
  std::vector<PartName> parts = of_transfer;
  if (!has_end) std::erase_if(parts, [](const PartName& part) { return part.value == &Parts::completion; });
  std::vector<Measurement> all;
  for (const std::uint64_t bytes : sizes) {
    const auto state = std::make_shared<State>(bench, bytes, back_end.by);
    for (Measurement& each : measurements_of(
             bench, of_trigger, bytes, {{"target", "peer"}, {"back_end", back_end.name}}, parts, [=, &bench] {
               state->arm(bench);
               return state->probe.run(ByTrigger{state->triggers.channel(), has_end}, true);
             }))
      all.push_back(std::move(each));
  }
  return all;
}

/// Parts of a task's time, compared with a payload and a flag that are stored without the library: a transfer alone.
std::vector<Measurement> prepare_tasks(Bench& bench) {
  struct State {
    explicit State(Bench& bench)
        : probe(bench), tasks(bench.world(), {.queues = 1, .workers = 1}), stored(bench.world(), payload_words),
          payloads(bench.world(), tasks.payload_buffer_bytes(payload_words * sizeof(std::uint64_t))) {
      tasks.register_function<Note>(
          {.object = probe.target_times(), .payloads = payloads.data(), .payload_bytes = payloads.bytes()});
    }
    Probe probe;
    Tasks<Functions> tasks;
    SymmetricArray<std::uint64_t> stored;
    SymmetricArray<std::byte> payloads;
  };
  const auto state = std::make_shared<State>(bench);
  constexpr std::uint64_t bytes = payload_words * sizeof(std::uint64_t);
  const int peer = static_cast<int>(bench.peer());
  std::vector<Measurement> all = measurements_of(
      bench, "bare/payload_and_flag", bytes, {{"target", "peer"}},
      {{"part_transfer", &Parts::way}, {"part_whole", &Parts::whole}}, [=, &bench] {
        World& world = bench.world();
        return state->probe.run(ByStores{world.at(state->stored.data(), peer), world.at(state->probe.arrived(), peer)},
                                true);
      });
  for (Measurement& each : all) each.peer_of = of_task, each.stores_to_peer = true;
  for (Measurement& each :
       measurements_of(bench, of_task, bytes, {{"target", "peer"}},
                       {{"part_post", &Parts::post},
                        {"part_start", &Parts::way, "transfer, target queue"},
                        {"part_execution", &Parts::execution},
                        {"part_completion", &Parts::completion},
                        {"part_whole", &Parts::whole}},
                       [=] {
                         return state->probe.run(
                             ByTask{state->tasks.channel(), state->probe.payload(), state->probe.reply()}, false);
                       }))
    all.push_back(std::move(each));
  return all;
}

template <class Prepare>
Case case_of(const char* method, Prepare prepare) {
  return {"control_parts", method, false, [=](Bench& bench, std::uint64_t) {
            bench.require_alike();
            bench.require_loads_and_stores();
            return prepare(bench);
          }};
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const EngineKind engine : {EngineKind::host, EngineKind::device})
    all.push_back(case_of(method_of(engine), [=](Bench& bench) { return prepare_commands(bench, engine); }));
  for (const BackEnd& back_end : back_ends)
    all.push_back(case_of(of_trigger, [=](Bench& bench) { return prepare_triggers(bench, back_end); }));
  all.push_back(case_of(of_task, prepare_tasks));
  return all;
}

const ListedCases cases(Command::methods, all_cases());

}  // namespace

}  // namespace beeline::bench::control_parts_cases
