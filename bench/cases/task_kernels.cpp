// SPDX-License-Identifier: Apache-2.0
/// @file
/// Active messages that start kernels (task/peer/signal), by device graphs and by the target's engine: round trips
/// until the reply is seen, and the time from the post to the start of the kernel. They are compared with a bare graph
/// that a kernel launches. A kernel that the target's CPU launches without an engine is in tasks.cpp
/// (bare/kernel_by_host).

#include <algorithm>

#include "beeline/host/tasks.hpp"
#include "cases/cases.hpp"
#include "device_launched/graphs.hpp"
#include "harness/group_choice.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench::task_kernels_cases {

namespace {

constexpr const char* method = "task/peer/signal";
constexpr std::uint32_t payload_words = 8;  ///< 64 bytes
constexpr unsigned kernel_threads = 256;

/// Adds up the payload. If the message asks for an answer, answers with the time at which it starts.
struct Solve {
  static constexpr const char* name = "solve";
  static constexpr bool is_kernel = true;
  struct Arguments {
    std::uint32_t answers_with_time;
  };
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, const Task& task) const {
    if (grid.thread_rank() != 0) return;
    if (task.as<Arguments>().answers_with_time != 0) task.answer(machine::clock_ns());
    const auto* const words = static_cast<const std::uint64_t*>(task.payload);
    for (std::uint32_t i = 0; i < payload_words; ++i) *static_cast<std::uint64_t*>(task.object) += words[i];
  }
};
using Functions = TaskList<Solve>;

struct Posting {
  TaskChannel channel;
  const std::uint64_t* payload;  ///< [payload_words] of ones
  std::uint64_t* reply;
  std::uint32_t rank;
};
[[nodiscard]] BEELINE_HOST_DEVICE inline TaskPost post_of(const Posting& posting, const Solve::Arguments& arguments) {
  TaskPost post = task_of<Functions, Solve>(arguments, posting.rank);
  post.payload = posting.payload, post.payload_bytes = payload_words * sizeof(std::uint64_t);
  post.reply = posting.reply, post.order = Order::relaxed;
  return post;
}

struct AskInTurn {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Posting posting) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      const Solve::Arguments none{0};
      TaskPost post = post_of(posting, none);
      post.reply_value = sequence;
      return post_task(Thread{}, ctx, posting.channel, post) == Status::ok &&
             wait(Thread{}, ctx, posting.reply, Compare::equal, sequence, posting.rank) == Status::ok;
    });
  }
};
/// Times from the post to the kernel's first thread, on a device with the poster's clock.
struct Start {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Posting posting) const {
    if (grid.block().thread_rank() != 0) return;
    time_parts(loop, [&](std::uint64_t) -> std::uint64_t {
      const Solve::Arguments with_time{1};
      TaskPost post = post_of(posting, with_time);
      post.reply_value = 0;
      const std::uint64_t start = machine::clock_ns();
      const bool is_good = post_task(Thread{}, ctx, posting.channel, post) == Status::ok &&
                           wait(Thread{}, ctx, posting.reply, Compare::greater_equal, start, posting.rank,
                                Timeout::none(), Order::relaxed) == Status::ok;
      const std::uint64_t part = is_good ? *posting.reply - start + 1 : 0;
      return is_good && quiet(Thread{}, ctx, posting.channel, posting.rank, 0) == Status::ok ? part : 0;
    });
  }
};

class KernelState {
 public:
  KernelState(Bench& bench, KernelStarter by, unsigned blocks)
      : bench_(bench), tasks_(bench.world(), {.queues = 1, .workers = 1}), sum_(bench.world(), 1),
        payload_(bench.world(), payload_words), reply_(bench.world(), 1), start_(bench.world(), 1),
        buffer_(bench.world(), tasks_.payload_buffer_bytes(payload_words * sizeof(std::uint64_t))), timed_(bench) {
    const std::vector<std::uint64_t> ones(payload_words, 1);
    bench.world().copy(payload_.data(), ones.data(), payload_.bytes());
    tasks_.register_kernel<Solve>({sum_.data(), buffer_.data(), buffer_.bytes(), nullptr},
                                  {.blocks = blocks, .threads = kernel_threads, .start = by});
  }
  template <class Kernel>
  std::vector<double> time(Rounds rounds, std::uint32_t rank, std::uint64_t* reply) {
    if (bench_.leads()) posted_ += std::uint64_t{rounds.warm_up} + std::uint64_t{rounds.iterations} * rounds.batches;
    return timed_.run(single_thread(bench_).threads, bench_.leads(), rounds, Kernel{},
                      Posting{tasks_.channel(), payload_.data(), reply, rank});
  }
  [[nodiscard]] std::vector<double> round_trips(Rounds rounds, std::uint32_t rank) {
    return time<AskInTurn>(rounds, rank, reply_.data());
  }
  [[nodiscard]] std::vector<double> starts(Rounds rounds) {
    return time<Start>(rounds, static_cast<std::uint32_t>(bench_.world().rank()), start_.data());
  }
  /// Collective. Whether all of the leader's kernels have run exactly once, with their payloads.
  [[nodiscard]] bool is_complete() {
    tasks_.quiet();
    std::uint64_t sum = 0;
    bench_.world().copy(&sum, sum_.data(), sizeof sum);
    return bench_.world().allreduce(sum) == payload_words * bench_.world().allreduce(posted_);
  }

 private:
  Bench& bench_;
  Tasks<Functions> tasks_;
  SymmetricArray<std::uint64_t> sum_, payload_, reply_, start_;
  SymmetricArray<std::byte> buffer_;
  TimedKernel timed_;
  std::uint64_t posted_ = 0;
};

std::vector<Measurement> prepare(Bench& bench, KernelStarter by) {
  bench.require_alike();
  const bool by_graph = by == KernelStarter::device_graph, on_gpu = bench.world().device().is_gpu();
  require(on_gpu || !by_graph, Status::unavailable, "host ranks have no device graphs");
  std::vector<Measurement> all;
  if (by_graph) {
    const auto bare = std::make_shared<DeviceGraphs>(bench.world());
    all.push_back({.operation = "task_kernel", .method = "bare/device_graph"});
    all.back().most_iterations = DeviceGraphs::most_iterations;
    all.back().peer_of = method;
    all.back().time = [bare](Rounds rounds) { return bare->time(rounds); };
  }
  const auto whole = static_cast<unsigned>(on_gpu ? bench.world().device().multiprocessors : 1);
  for (const unsigned blocks : on_gpu ? std::vector<unsigned>{1, whole} : std::vector<unsigned>{1}) {
    const auto state = std::make_shared<KernelState>(bench, by, blocks);
    const auto add = [&](const char* operation, const char* target, auto time) {
      Measurement measurement{.operation = operation, .method = method, .bytes = payload_words * sizeof(std::uint64_t)};
      measurement.settings = {{"started_by", by_graph ? "device_graph" : "engine"},
                              {"target", target},
                              {"blocks", std::uint64_t{blocks}},
                              {"threads_per_block", std::uint64_t{kernel_threads}}};
      measurement.most_iterations = 1000;
      measurement.time = time;
      measurement.verify = [=](std::uint64_t) {
        static_cast<void>(time(Rounds{}));
        return state->is_complete();
      };
      if (by_graph) measurement.baseline = 0;
      all.push_back(std::move(measurement));
    };
    add("task_kernel", "peer", [=](Rounds rounds) { return state->round_trips(rounds, 1); });
    add("task_kernel", "own", [=](Rounds rounds) { return state->round_trips(rounds, 0); });
    add("task_kernel_start", "own", [=](Rounds rounds) { return state->starts(rounds); });
  }
  return all;
}

Case case_of(KernelStarter by) {
  return {"task_kernel", method, false, [by](Bench& bench, std::uint64_t) { return prepare(bench, by); }};
}

const ListedCases cases(Command::methods, {case_of(KernelStarter::device_graph), case_of(KernelStarter::engine)});

}  // namespace

}  // namespace beeline::bench::task_kernels_cases
