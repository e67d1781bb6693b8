// SPDX-License-Identifier: Apache-2.0
// Tasks that are kernels: each runs once, as a whole grid, in the order of its queue, whatever starts it, and replies
// when all of its blocks have ended.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/conformance/queue_cases.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::task_kernel_cases {

namespace {

using namespace beeline;

constexpr unsigned kernel_blocks = 5;

/// What a target records about one poster.
struct Ran {
  std::uint64_t blocks, bytes, faults;
};

/// Checks order and payload; then each block counts itself.
struct Grow {
  static constexpr const char* name = "grow";
  static constexpr bool is_kernel = true;
  struct Arguments {
    std::uint64_t number;
    std::uint32_t poster, queue;
  };
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const Task& task) const {
    const Arguments& it = task.as<Arguments>();
    Ran& ran = static_cast<Ran*>(task.object)[it.queue * ctx.size + it.poster];
    detail::DeviceAtomic<std::uint64_t> blocks(ran.blocks), bytes(ran.bytes), faults(ran.faults);
    const auto* const payload = static_cast<const std::uint8_t*>(task.payload);
    bool is_wrong = task.poster != it.poster;
    std::uint64_t mine = 0;
    for (std::size_t i = grid.thread_rank(); i < task.payload_bytes; i += grid.size(), ++mine)
      is_wrong |= payload[i] != static_cast<std::uint8_t>(it.number + i + it.poster);
    const std::uint64_t before = blocks.load(std::memory_order_relaxed);
    is_wrong |= before < it.number * grid.blocks() || before >= (it.number + 1) * grid.blocks();
    if (is_wrong) faults.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(mine, std::memory_order_relaxed);
    grid.block().sync();
    if (grid.block().thread_rank() == 0) blocks.fetch_add(1, std::memory_order_relaxed);
  }
};

/// Adds the value of its arguments.
struct Take {
  static constexpr const char* name = "take";
  struct Arguments {
    std::uint64_t value;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() == 0) *static_cast<std::uint64_t*>(task.object) += task.as<Arguments>().value;
  }
};

/// Runs for some time, then sends its value back by a task.
struct Delay;
using List = TaskList<Grow, Take, Delay>;
struct Delay {
  static constexpr const char* name = "delay";
  static constexpr bool is_kernel = true;
  struct Arguments {
    std::uint64_t value, ns;
  };
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const Task& task) const {
    for (const std::uint64_t start = machine::clock_ns(); machine::clock_ns() - start < task.as<Arguments>().ns;) {
    }
    if (grid.block_rank() != 0) return;
    const Take::Arguments back{task.as<Arguments>().value};
    static_cast<void>(post_task(grid.block(), ctx, task.channel, task_of<List, Take>(back, task.poster, 0)));
  }
};

BEELINE_HOST_DEVICE inline std::size_t payload_of(std::uint64_t number, std::size_t most) {
  return static_cast<std::size_t>(number * 37) % (most + 1);
}

struct GrowArguments {
  TaskChannel channel;
  std::uint8_t* payloads;  ///< [blocks, most]
  std::uint64_t* replies;  ///< [blocks]
  const Ran* ran;
  std::size_t most;
  std::uint64_t first, count;
  bool replies_to_each;
};
/// Starts a block for each queue; it posts to all ranks.
struct PostGrowth {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, GrowArguments a) const {
    const auto& block = grid.block();
    const std::uint32_t queue = grid.block_rank();
    std::uint8_t* const payload = a.payloads + queue * a.most;
    std::uint64_t* const reply = a.replies + queue;
    std::uint64_t answered = a.first * ctx.size;
    for (std::uint64_t number = a.first; number < a.first + a.count; ++number) {
      for (std::size_t i = block.thread_rank(); i < a.most; i += block.size())
        payload[i] = static_cast<std::uint8_t>(number + i + ctx.rank);
      block.sync();
      const Grow::Arguments growth{number, ctx.rank, queue};
      for (std::uint32_t rank = 0; rank < ctx.size; ++rank) {
        TaskPost post = task_of<List, Grow>(growth, rank, queue);
        post.payload = payload, post.payload_bytes = payload_of(number, a.most);
        if (a.replies_to_each) post.reply = reply, post.reply_value = ++answered;
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_task(block, ctx, a.channel, post));
        if (!a.replies_to_each) continue;
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, reply, Compare::equal, answered, rank));
        if (ctx.access_to(rank).access != PeerAccess::direct) continue;  // stores of its kernels cannot be read here
        const Ran& there = *ctx.at(const_cast<Ran*>(a.ran) + queue * ctx.size + ctx.rank, rank);
        if (block.thread_rank() == 0)
          BEELINE_DEVICE_CHECK_EQ(report, (number + 1) * kernel_blocks, load_value(&there.blocks));
      }
    }
    for (std::uint32_t rank = 0; rank < ctx.size; ++rank)
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(block, ctx, a.channel, rank, queue));
  }
};

void need_starter(RankTest& test, KernelStarter by) {
  need_one_kind(test);
  test.skip_if(by == KernelStarter::device_graph && !test.on_gpu(), "host ranks have no device graphs");
}

/// Fails the case with the reason if a GPU cannot launch graphs; skips it on host ranks.
void need_graphs(RankTest& test, KernelStarter by, const std::function<TaskKernelStart()>& register_any) {
  if (by != KernelStarter::device_graph) return;
  const TaskKernelStart start = register_any();
  const std::string reason = start.by == KernelStarter::device_graph ? "" : start.reason;
  if (test.on_gpu()) BEELINE_CHECK_EQ(std::string(), reason);
  test.skip_if_any(reason);
}

/// Kernels that all ranks post, all started by the same means.
class Growth {
 public:
  Growth(RankTest& test, KernelStarter by, const TaskOptions& options, std::size_t most)
      : test_(test), queues_(options.queues), most_(most), tasks_(test.world(), options),
        ran_(test.world(), std::size_t{options.queues} * static_cast<std::size_t>(test.size())),
        payloads_(test.world(), std::max<std::size_t>(1, options.queues * most)),
        replies_(test.world(), options.queues),
        buffer_(test.world(), std::max<std::size_t>(16, tasks_.payload_buffer_bytes(most))) {
    const TaskRegistration what{ran_.data(), most == 0 ? nullptr : buffer_.data(), most == 0 ? 0 : buffer_.bytes(),
                                nullptr};
    const auto shape_by = [](KernelStarter starter) {
      return TaskKernelShape{.blocks = kernel_blocks, .threads = 96, .start = starter};
    };
    need_graphs(test, by, [&] {
      tasks_.register_kernel<Grow>(what, shape_by(KernelStarter::any));
      return tasks_.kernel_start<Grow>();
    });
    tasks_.register_kernel<Grow>(what, shape_by(by));
    const bool has_graphs = tasks_.kernel_start<Grow>().by == KernelStarter::device_graph;
    BEELINE_CHECK(by == KernelStarter::any || has_graphs == (by == KernelStarter::device_graph));
    BEELINE_CHECK_EQ(has_graphs, tasks_.kernel_start<Grow>().reason.empty());
  }
  [[nodiscard]] Tasks<List>& tasks() { return tasks_; }

  void post(std::uint64_t count, bool replies_to_each) {
    test_.run(test_.shape(queues_, true), PostGrowth{},
              GrowArguments{tasks_.channel(), payloads_.data(), replies_.data(), ran_.data(), most_, posted_, count,
                            replies_to_each},
              "kernels");
    posted_ += count;
  }
  void check() {
    std::uint64_t bytes = 0;
    for (std::uint64_t number = 0; number < posted_; ++number) bytes += payload_of(number, most_);
    for (std::size_t i = 0; i < ran_.count(); ++i) {
      const Ran ran = test_.read_value(&ran_.data()[i]);
      BEELINE_CHECK_EQ(posted_ * kernel_blocks, ran.blocks);
      BEELINE_CHECK_EQ(bytes, ran.bytes);
      BEELINE_CHECK_EQ(std::uint64_t{0}, ran.faults);
    }
    const TaskStatistics done = tasks_.statistics();
    BEELINE_CHECK_EQ(posted_ * ran_.count(), done.kernels_by_graph + done.kernels_by_engine);
    const bool has_graphs = tasks_.kernel_start<Grow>().by == KernelStarter::device_graph;
    BEELINE_CHECK_EQ(has_graphs ? done.handed_kernels : posted_ * ran_.count(), done.kernels_by_engine);
  }

 private:
  RankTest& test_;
  std::uint32_t queues_;
  std::size_t most_;
  Tasks<List> tasks_;
  SymmetricArray<Ran> ran_;
  SymmetricArray<std::uint8_t> payloads_;
  Signals replies_;
  SymmetricArray<std::byte> buffer_;
  std::uint64_t posted_ = 0;
};

/// Posts more kernels than one parent graph may launch.
void grow(RankTest& test, KernelStarter by) {
  need_starter(test, by);
  const std::uint64_t count = test.on_gpu() ? 80 : 20;
  for (const std::size_t most : {std::size_t{0}, std::size_t{700}}) {
    Growth growth(test, by, {.queues = 2, .depth = 8, .workers = 2}, most);
    growth.post(count, false);
    growth.post(count, true);
    test.world().barrier();
    growth.check();
    test.world().barrier();
  }
}

BEELINE_CASE(task, kernels_by_whatever_starts_them, 1) { grow(test, KernelStarter::any); }
BEELINE_CASE(task, kernels_by_device_graphs, 1) { grow(test, KernelStarter::device_graph); }
BEELINE_CASE(task, kernels_by_the_engine, 1) { grow(test, KernelStarter::engine); }

/// Kernels run without a new lease and without the engine of the target.
BEELINE_CASE(task, a_hundred_kernels_without_a_cpu, 1) {
  need_starter(test, KernelStarter::device_graph);
  Growth growth(test, KernelStarter::device_graph,
                {.queues = 1, .workers = 1, .lease_ns = 4'000'000'000, .idle_ns = 300'000'000}, 64);
  const std::uint64_t count = 100 / static_cast<std::uint64_t>(test.size());
  growth.post(1, false);
  test.world().barrier();
  const TaskStatistics before = growth.tasks().statistics();
  growth.post(count, false);
  const TaskStatistics after = growth.tasks().statistics();
  BEELINE_CHECK_EQ(before.leases, after.leases);
  BEELINE_CHECK_EQ(before.launch_leases, after.launch_leases);
  BEELINE_CHECK_EQ(before.kernels_by_engine, after.kernels_by_engine);
  test.world().barrier();
  growth.check();
  test.world().barrier();
}

/// Kernels outlast the leases of workers and of the launch service; other kernels run beside them, and so do calls that
/// wait for the whole device.
void outlast(RankTest& test, KernelStarter by) {
  need_starter(test, by);
  World& world = test.world();
  constexpr std::uint32_t queues = 3, rounds = 4;
  constexpr std::uint64_t kernel_ns = 3'000'000;
  Tasks<List> tasks(world, {.queues = queues, .depth = 8, .workers = queues, .lease_ns = 500'000, .idle_ns = 100'000});
  const SymmetricArray<std::uint64_t> sum(world, 1);
  const Signals completed(world, 1);
  tasks.register_function<Take>({sum.data(), nullptr, 0, nullptr});
  const auto register_delay = [&](KernelStarter starter) {
    tasks.register_kernel<Delay>({nullptr, nullptr, 0, completed.data()},
                                 {.blocks = 2, .threads = 64, .start = starter});
    return tasks.kernel_start<Delay>();
  };
  need_graphs(test, by, [&] { return register_delay(KernelStarter::any); });
  static_cast<void>(register_delay(by));
  FullDevice full(test);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::uint32_t queue = 1; queue < queues; ++queue)
      tasks.post<Delay>({round + 1, queue == 1 ? kernel_ns : 0}, test.ahead(1), queue);
    full.launch();
    const SymmetricArray<std::byte> memory(world, 4096);
    full.synchronize();
  }
  world.synchronize();
  tasks.quiet();
  BEELINE_CHECK_EQ(std::uint64_t{(queues - 1) * rounds * (rounds + 1) / 2}, test.read_value(sum.data()));
  BEELINE_CHECK_EQ(std::uint64_t{(queues - 1) * rounds}, test.read_value(completed.data()));
  world.barrier();
}

/// Answers its poster.
struct Answer {
  static constexpr const char* name = "answer";
  struct Arguments {
    std::uint64_t value;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() == 0) task.answer(task.as<Arguments>().value);
  }
};
/// A kernel that does not answer its poster.
struct Silent {
  static constexpr const char* name = "silent";
  static constexpr bool is_kernel = true;
  struct Arguments {};
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context&, const Task&) const {}
};
using Replies = TaskList<Answer, Silent>;

struct ReplyArguments {
  TaskChannel channel;
  std::uint64_t* replies;  ///< [2]
};
struct PostReplies {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, ReplyArguments a) const {
    if (grid.thread_rank() != 0) return;
    const std::uint32_t peer = (ctx.rank + 1) % ctx.size;
    const Answer::Arguments value{5};
    const Silent::Arguments nothing{};
    TaskPost posts[] = {task_of<Replies, Answer>(value, peer), task_of<Replies, Silent>(nothing, peer)};
    for (int i = 0; i < 2; ++i) {
      posts[i].reply = a.replies + i, posts[i].reply_value = 0;
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_task(Thread{}, ctx, a.channel, posts[i]));
    }
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(Thread{}, ctx, a.channel, peer, 0));
  }
};

/// A function's answer is not taken for the answer of the kernel after it, even if the poster is on another node.
BEELINE_CASE(task, kernels_that_do_not_answer, 1) {
  need_one_kind(test);
  World& world = test.world();
  Tasks<Replies> tasks(world, {.queues = 1, .workers = 1});
  const Signals replies(world, 2);
  tasks.register_function<Answer>({nullptr, nullptr, 0, nullptr});
  tasks.register_kernel<Silent>({nullptr, nullptr, 0, nullptr}, {.blocks = 1, .threads = 32});
  test.run(test.shape(1, true), PostReplies{}, ReplyArguments{tasks.channel(), replies.data()}, "replies");
  world.barrier();
  BEELINE_CHECK_EQ(std::uint64_t{5}, test.read_value(&replies.data()[0]));
  BEELINE_CHECK_EQ(std::uint64_t{0}, test.read_value(&replies.data()[1]));
  world.barrier();
}

BEELINE_CASE(task, kernels_that_outlast_leases, 1) { outlast(test, KernelStarter::any); }
BEELINE_CASE(task, engine_kernels_that_outlast_leases, 1) { outlast(test, KernelStarter::engine); }

}  // namespace

}  // namespace beeline_test::task_kernel_cases
