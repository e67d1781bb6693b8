// SPDX-License-Identifier: Apache-2.0
/// @file
/// Active messages (task/peer/signal). Round trips until the reply is seen, at a peer and at this rank itself, are
/// compared with two bare flags. Also: the time of a post; the time from a post to the start of its function; a kernel
/// that the target's CPU launches instead; tasks whose workers must be started first; rates by numbers of queues and
/// workers.

#include "beeline/host/tasks.hpp"

#include <algorithm>

#include "beeline/device/put_get.hpp"
#include "cases/cases.hpp"
#include "cases/network_pair.hpp"
#include "harness/group_choice.hpp"
#include "harness/timed_grid.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench::tasks_cases {

namespace {

constexpr const char* method = "task/peer/signal";
constexpr std::uint32_t payload_words = 8;    ///< 64 bytes
constexpr std::uint64_t rest_ns = 2'000'000;  ///< idle time after which workers have ended: see TaskOptions::idle_ns

/// Adds up the payload, so that it is read. Answers if the message asks for it.
struct Sum {
  static constexpr const char* name = "sum";
  struct Arguments {
    std::uint32_t slot;
    std::uint32_t answer;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() != 0) return;
    const auto* const words = static_cast<const std::uint64_t*>(task.payload);
    std::uint64_t sum = 0;
    if (task.payload_bytes == payload_words * sizeof sum) {
      BEELINE_UNROLL
      for (std::uint32_t i = 0; i < payload_words; ++i) sum += words[i];
    }
    if (task.as<Arguments>().answer != 0) task.answer(task.as<Arguments>().answer + sum - payload_words);
    static_cast<std::uint64_t*>(task.object)[16 * task.as<Arguments>().slot] += sum;
  }
};
/// Answers with the time at which it starts.
struct Stamp {
  static constexpr const char* name = "stamp";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() == 0) task.answer(machine::clock_ns());
  }
};
using Functions = TaskList<Sum, Stamp>;

/// The sender of the reply, and the writes that are visible with it.
enum class Reply : std::uint32_t {
  of_memory,  ///< from the worker, after the function: shows writes of the poster and of the function
  of_task,    ///< from the worker: shows writes of the function, which sees only the message
  of_value    ///< from the function: shows the value alone
};
constexpr Reply replies[] = {Reply::of_memory, Reply::of_task, Reply::of_value};
constexpr const char* name_of(Reply reply) {
  return reply == Reply::of_memory ? "memory" : reply == Reply::of_task ? "task" : "value";
}

/// The posts of one block.
struct Posting {
  TaskChannel channel;
  const std::uint64_t* payload;  ///< [payload_words] of ones
  std::uint64_t* reply;
  std::uint32_t rank;
  Reply replies;
};

[[nodiscard]] BEELINE_HOST_DEVICE inline TaskPost post_of(const Posting& posting, const Sum::Arguments& arguments,
                                                          std::uint32_t queue) {
  TaskPost post = task_of<Functions, Sum>(arguments, posting.rank, queue);
  post.payload = posting.payload, post.payload_bytes = payload_words * sizeof(std::uint64_t);
  post.order = posting.replies == Reply::of_memory ? Order::memory : Order::relaxed;
  return post;
}

BEELINE_HOST_DEVICE inline bool ask(const Context& ctx, const Posting& posting, std::uint64_t sequence) {
  const bool by_function = posting.replies == Reply::of_value;
  const Sum::Arguments arguments{0, by_function ? static_cast<std::uint32_t>(sequence) : 0};
  TaskPost post = post_of(posting, arguments, 0);
  post.reply = posting.reply, post.reply_value = by_function ? 0 : sequence;
  return post_task(Thread{}, ctx, posting.channel, post) == Status::ok;
}
BEELINE_HOST_DEVICE inline bool await_reply(const Context& ctx, const Posting& posting, std::uint64_t sequence) {
  const Order order = posting.replies == Reply::of_value ? Order::relaxed : Order::memory;
  return wait(Thread{}, ctx, posting.reply, Compare::equal, sequence, posting.rank, Timeout::none(), order) ==
         Status::ok;
}

struct AskInTurn {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Posting posting) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return ask(ctx, posting, sequence) && await_reply(ctx, posting, sequence);
    });
  }
};

/// A round trip after an idle time, which is not timed.
struct AskAfterRest {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Posting posting) const {
    if (grid.block().thread_rank() != 0) return;
    time_parts(loop, [&](std::uint64_t sequence) -> std::uint64_t {
      rest(ctx, rest_ns);
      const std::uint64_t start = machine::clock_ns();
      const bool is_good = ask(ctx, posting, sequence) && await_reply(ctx, posting, sequence);
      return is_good ? machine::clock_ns() - start + 1 : 0;
    });
  }
};

/// Times the post alone, until the call returns; the reply is awaited, but not timed.
struct Post {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Posting posting) const {
    if (grid.block().thread_rank() != 0) return;
    time_parts(loop, [&](std::uint64_t sequence) -> std::uint64_t {
      const std::uint64_t start = machine::clock_ns();
      const bool is_good = ask(ctx, posting, sequence);
      const std::uint64_t part = machine::clock_ns() - start + 1;
      return is_good && await_reply(ctx, posting, sequence) ? part : 0;
    });
  }
};

/// Times from the post to the start of the function, which runs on a device with the poster's clock.
struct Start {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Posting posting) const {
    if (grid.block().thread_rank() != 0) return;
    time_parts(loop, [&](std::uint64_t) -> std::uint64_t {
      const Stamp::Arguments none{};
      TaskPost post = task_of<Functions, Stamp>(none, posting.rank);
      post.payload = posting.payload, post.payload_bytes = payload_words * sizeof(std::uint64_t);
      post.reply = posting.reply, post.reply_value = 0, post.order = Order::relaxed;
      const std::uint64_t start = machine::clock_ns();
      const bool is_good = post_task(Thread{}, ctx, posting.channel, post) == Status::ok &&
                           wait(Thread{}, ctx, posting.reply, Compare::greater_equal, start, posting.rank,
                                Timeout::none(), Order::relaxed) == Status::ok;
      return is_good ? *posting.reply - start + 1 : 0;
    });
  }
};

/// The payload and a flag go to the peer, which answers with a flag.
struct BareAnswer {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, const std::uint64_t* payload,
                                      std::uint64_t* words) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    std::uint64_t* const there = ctx.at(words, loop.peer);
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            if (loop.leads)
              for (std::uint32_t i = 0; i < payload_words; ++i) there[16 + i] = payload[i];
            BareWord(*there).store(sequence, std::memory_order_release);
          },
          [&] { return bare_poll<std::memory_order_acquire>(block, ctx, words, sequence); });
    });
  }
};

/// The payload goes to the peer by a put_signal, which a kernel there answers by a signal.
struct AnswerBySignal {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, const std::uint64_t* payload,
                                      std::uint64_t* words) const {
    if (grid.block().thread_rank() != 0) return;
    const Thread one{};
    time_rounds(one, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            const Status sent =
                loop.leads ? put_signal(one, ctx, words + 16, payload, payload_words, words, sequence, loop.peer)
                           : signal(one, ctx, words, sequence, loop.peer);
            return sent == Status::ok;
          },
          [&] { return wait(one, ctx, words, Compare::greater_equal, sequence, loop.peer) == Status::ok; });
    });
  }
};

/// A word goes to the peer's CPU, which launches a kernel that answers: the cost of a kernel that no worker starts.
struct AskHost {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* wanted,
                                      std::uint64_t* answered) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      BareWord(*ctx.at(wanted, loop.peer)).store(sequence, std::memory_order_release);
      return bare_poll<std::memory_order_acquire>(block, ctx, answered, sequence);
    });
  }
};
struct AnswerOnce {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* answered, std::uint32_t peer,
                                      std::uint64_t sequence) const {
    if (grid.block().thread_rank() == 0) BareWord(*ctx.at(answered, peer)).store(sequence, std::memory_order_release);
  }
};

/// Blocks post as fast as they can, each to its own queue, and wait until all tasks have run.
struct PostAll {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Posting posting, BlockTimes* times,
                                      std::uint32_t posts) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint32_t queue = grid.block_rank() % posting.channel.queues;
    const std::uint64_t start = machine::clock_ns();
    const Sum::Arguments arguments{queue, 0};
    for (std::uint32_t i = 0; i < posts; ++i)
      if (post_task(Thread{}, ctx, posting.channel, post_of(posting, arguments, queue)) != Status::ok) return;
    if (quiet(Thread{}, ctx, posting.channel, posting.rank, queue) != Status::ok) return;
    times[grid.block_rank()] = {start, machine::clock_ns()};
  }
};

class TaskState {
 public:
  TaskState(Bench& bench, const TaskOptions& options)
      : bench_(bench), options_(options), tasks_(bench.world(), options), sums_(bench.world(), 16 * options.queues),
        payload_(bench.world(), payload_words), words_(bench.world(), 32), start_(bench.world(), 1),
        wanted_(bench.world(), 1, Heap::pinned), answered_(bench.world(), 1),
        buffer_(bench.world(), tasks_.payload_buffer_bytes(payload_words * sizeof(std::uint64_t))), timed_(bench),
        grid_(bench, 4 * options.queues) {
    const std::vector<std::uint64_t> ones(payload_words, 1);
    bench.world().copy(payload_.data(), ones.data(), payload_.bytes());
    tasks_.register_function<Sum>({sums_.data(), buffer_.data(), buffer_.bytes(), nullptr});
    tasks_.register_function<Stamp>({nullptr, buffer_.data(), buffer_.bytes(), nullptr});
  }

  template <class Kernel>
  std::vector<double> ask(Rounds rounds, std::uint32_t rank, Reply reply = Reply::of_memory) {
    if (bench_.leads()) posted_ += std::uint64_t{rounds.warm_up} + std::uint64_t{rounds.iterations} * rounds.batches;
    return timed_.run(single_thread(bench_).threads, bench_.leads(), rounds, Kernel{}, posting(rank, reply));
  }
  /// Posts to this rank itself. These posts are excluded from the checked sums.
  std::vector<double> start(Rounds rounds) {
    Posting own = posting(static_cast<std::uint32_t>(bench_.world().rank()), Reply::of_value);
    own.reply = start_.data();
    return timed_.run(single_thread(bench_).threads, bench_.leads(), rounds, Start{}, own);
  }
  template <class Kernel>
  std::vector<double> exchange(Rounds rounds) {
    return timed_.run(single_thread(bench_).threads, bench_.paired(), rounds, Kernel{}, payload_.data(), words_.data());
  }
  std::vector<double> ask_host(Rounds rounds) {
    const std::uint64_t first = timed_.last(), last = Loop{nullptr, first, rounds, 0, false}.last();
    std::vector<double> times =
        timed_.run(single_thread(bench_).threads, bench_.leads(), rounds, AskHost{}, wanted_.data(), answered_.data());
    for (std::uint64_t sequence = first + 1; bench_.paired() && !bench_.leads() && sequence <= last; ++sequence) {
      const Status status = wait(Thread{}, bench_.world().host_context(), wanted_.data(), Compare::greater_equal,
                                 sequence, bench_.peer());
      require(status == Status::ok, status, "a word that asks for a kernel");
      launch(bench_.world(), {.threads = 1}, AnswerOnce{}, answered_.data(), bench_.peer(), sequence);
    }
    return times;
  }
  double post_all(std::uint32_t blocks, std::uint32_t posts) {
    if (bench_.leads()) posted_ += std::uint64_t{blocks} * posts;
    return grid_.run({blocks, 32}, bench_.leads(), PostAll{}, posting(bench_.peer(), Reply::of_memory), grid_.times(),
                     posts);
  }
  /// Collective. Whether all of the leader's tasks have run exactly once, with their payloads.
  bool is_complete() {
    tasks_.quiet();
    std::vector<std::uint64_t> sums(sums_.count());
    bench_.world().copy(sums.data(), sums_.data(), sums_.bytes());
    std::uint64_t sum = 0;
    for (const std::uint64_t each : sums) sum += each;
    return bench_.world().allreduce(sum) == payload_words * bench_.world().allreduce(posted_);
  }
  [[nodiscard]] Settings settings() const {
    return {{"queues", std::uint64_t{options_.queues}},
            {"workers", std::uint64_t{options_.workers}},
            {"multiprocessors", std::uint64_t{bench_.world().device().is_gpu() ? options_.multiprocessors : 0}}};
  }

 private:
  [[nodiscard]] Posting posting(std::uint32_t rank, Reply reply) const {
    return {tasks_.channel(), payload_.data(), words_.data() + 15, rank, reply};
  }

  Bench& bench_;
  const TaskOptions options_;
  Tasks<Functions> tasks_;
  SymmetricArray<std::uint64_t> sums_, payload_, words_, start_, wanted_, answered_;
  SymmetricArray<std::byte> buffer_;
  TimedKernel timed_;
  TimedGrid grid_;
  std::uint64_t posted_ = 0;
};

Measurement measurement_of(const std::shared_ptr<TaskState>& state, const char* operation, const char* called,
                           std::function<std::vector<double>(Rounds)> time) {
  Measurement measurement{.operation = operation, .method = called, .bytes = payload_words * sizeof(std::uint64_t)};
  measurement.settings = state->settings();
  measurement.verify = [=](std::uint64_t) {
    static_cast<void>(time(Rounds{}));
    return state->is_complete();
  };
  measurement.time = std::move(time);
  return measurement;
}

using State = std::shared_ptr<TaskState>;

std::vector<Measurement> prepare_round_trips(Bench& bench, std::uint64_t) {
  bench.require_alike();
  const auto state = std::make_shared<TaskState>(bench, TaskOptions{.queues = 1, .workers = 1});
  std::vector<Measurement> all;
  all.push_back(measurement_of(state, "task", "bare/payload_and_two_flags",
                               [=](Rounds rounds) { return state->exchange<BareAnswer>(rounds); }));
  all.back().peer_of = method;
  const auto add = [&](const char* operation, const char* target, Reply reply, auto time) {
    all.push_back(measurement_of(state, operation, method, time));
    all.back().settings.emplace_back("target", target);
    all.back().settings.emplace_back("reply", name_of(reply));
  };
  for (const auto& [target, rank] : {std::pair{"peer", std::uint32_t{1}}, std::pair{"own", std::uint32_t{0}}})
    for (const Reply reply : replies) {
      add("task", target, reply,
          [=, rank = rank](Rounds rounds) { return state->ask<AskInTurn>(rounds, rank, reply); });
      all.back().baseline = 0;
      add("task_post", target, reply,
          [=, rank = rank](Rounds rounds) { return state->ask<Post>(rounds, rank, reply); });
    }
  add("task_start", "own", Reply::of_value, [=](Rounds rounds) { return state->start(rounds); });
  all.push_back(
      measurement_of(state, "task", "bare/kernel_by_host", [=](Rounds rounds) { return state->ask_host(rounds); }));
  all.back().peer_of = method;
  if (!bench.world().device().is_gpu()) return all;  // workers of host ranks do not end
  all.push_back(measurement_of(state, "task_restart", method,
                               [=](Rounds rounds) { return state->ask<AskAfterRest>(rounds, 1); }));
  all.back().most_iterations = 10;
  return all;
}

/// Between nodes the peer is a put_signal that a kernel answers by a signal.
std::vector<Measurement> prepare_across_nodes(Bench& bench, std::uint64_t) {
  require_two_nodes(bench);
  bench.require_alike();
  const auto state = std::make_shared<TaskState>(bench, TaskOptions{.queues = 1, .workers = 1});
  std::vector<Measurement> all;
  all.push_back(measurement_of(state, "task", "put_signal_and_answer",
                               [=](Rounds rounds) { return state->exchange<AnswerBySignal>(rounds); }));
  all.back().peer_of = method;
  for (const Reply reply : replies) {
    all.push_back(
        measurement_of(state, "task", method, [=](Rounds rounds) { return state->ask<AskInTurn>(rounds, 1, reply); }));
    all.back().settings.emplace_back("reply", name_of(reply));
    all.back().baseline = 0;
  }
  return all;
}

/// Queues of the target, each with a worker; the multiprocessors that the workers share; and the blocks that post.
struct RateShape {
  std::uint32_t queues, multiprocessors, blocks;
};
constexpr RateShape rate_shapes[] = {{1, 1, 1},   {2, 1, 2},    {8, 1, 8},    {8, 8, 8},
                                     {16, 1, 64}, {64, 4, 256}, {64, 8, 128}, {64, 8, 256}};

Case rate_of(const RateShape& shape) {
  const auto prepare = [&shape](Bench& bench, std::uint64_t) {
    bench.require_alike();
    if (shape.blocks > 2 && !bench.world().device().is_gpu()) return std::vector<Measurement>();
    const State state = std::make_shared<TaskState>(
        bench,
        TaskOptions{
            .queues = shape.queues, .depth = 256, .workers = shape.queues, .multiprocessors = shape.multiprocessors});
    Measurement measurement = measurement_of(state, "task_rate", method, [=, &shape](Rounds rounds) {
      return time_batches(rounds, [&] { return state->post_all(shape.blocks, rounds.iterations); });
    });
    measurement.unit = Unit::million_messages_per_second;
    measurement.operations_per_iteration = shape.blocks;
    measurement.settings.emplace_back("blocks", std::uint64_t{shape.blocks});
    return std::vector<Measurement>{measurement};
  };
  return {"task_rate", method, false, prepare};
}

std::vector<Case> all_cases() {
  std::vector<Case> all = {{"task", method, false, prepare_round_trips}};
  for (const RateShape& shape : rate_shapes) all.push_back(rate_of(shape));
  return all;
}

const ListedCases cases(Command::methods, all_cases());
const ListedCases network_cases(Command::network, {{"task", method, false, prepare_across_nodes}});

}  // namespace

}  // namespace beeline::bench::tasks_cases
