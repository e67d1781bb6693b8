// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sums into a peer's array by a kernel's active message (task/peer/signal): a worker of the peer runs it, or a device
/// graph starts a kernel for it there. It is compared with the same sum by both CPUs (host/copy_engine/signal), and by
/// a resident kernel of the peer without the library. Timed until the poster knows that the sum is complete. Source:
/// seed 003, Extended Task Queuing, its accumulate.

#include <algorithm>

#include "beeline/host/tasks.hpp"
#include "cases/cases.hpp"
#include "harness/timed_host.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench::accumulate_cases {

namespace {

constexpr const char* method = "task/peer/signal";
constexpr unsigned threads = 256;  ///< of the kernels that send, and of each block that adds
constexpr unsigned most_adding_blocks = 64;

/// Adds `count` words with `all` threads, of which the caller is number `thread`.
BEELINE_HOST_DEVICE inline void add_words(std::size_t thread, std::size_t all, std::uint64_t* array,
                                          const std::uint64_t* values, std::uint64_t count) {
  for (std::uint64_t i = thread; i < count; i += all) array[i] += values[i];
}

struct Add {
  static constexpr const char* name = "add";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    add_words(group.thread_rank(), group.size(), static_cast<std::uint64_t*>(task.object),
              static_cast<const std::uint64_t*>(task.payload), task.payload_bytes / sizeof(std::uint64_t));
  }
};
struct AddByGrid {
  static constexpr const char* name = "add_by_grid";
  static constexpr bool is_kernel = true;
  struct Arguments {};
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, const Task& task) const {
    add_words(grid.thread_rank(), grid.size(), static_cast<std::uint64_t*>(task.object),
              static_cast<const std::uint64_t*>(task.payload), task.payload_bytes / sizeof(std::uint64_t));
  }
};
using Functions = TaskList<Add, AddByGrid>;

/// A vector of ones for the peer's array.
struct Sum {
  const std::uint64_t* values;  ///< [count]
  std::uint64_t count;
};

template <class Function>
struct PostSums {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, TaskChannel tasks, Sum sum,
                                      std::uint64_t* reply) const {
    const auto& block = grid.block();
    time_rounds(block, loop, [&](std::uint64_t sequence) {
      const typename Function::Arguments none{};
      TaskPost post = task_of<Functions, Function>(none, loop.peer);
      post.payload = sum.values, post.payload_bytes = sum.count * sizeof(std::uint64_t);
      post.reply = reply, post.reply_value = sequence, post.order = Order::relaxed;
      return post_task(block, ctx, tasks, post) == Status::ok &&
             wait(block, ctx, reply, Compare::greater_equal, sequence, loop.peer) == Status::ok;
    });
  }
};

/// Words by which one block of each rank notifies the block of the other rank: the values have arrived, or were added.
struct SumWords {
  PaddedWord sent, added;
};

/// The leader's block stores the values and a flag at the peer; the peer's block adds the values and replies.
struct BareSums {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Sum sum, std::uint64_t* inbox,
                                      std::uint64_t* array, SumWords* words) const {
    const auto& block = grid.block();
    SumWords* const there = ctx.at(words, loop.peer);
    time_rounds(block, loop, [&](std::uint64_t sequence) {
      if (loop.leads) {
        detail::copy_bytes(block, reinterpret_cast<std::byte*>(ctx.at(inbox, loop.peer)),
                           reinterpret_cast<const std::byte*>(sum.values), sum.count * sizeof(std::uint64_t));
        tell(block, there->sent, sequence);
        return bare_poll<std::memory_order_acquire>(block, ctx, &words->added.value, sequence);
      }
      if (!bare_poll<std::memory_order_acquire>(block, ctx, &words->sent.value, sequence)) return false;
      add_words(block.thread_rank(), block.size(), array, inbox, sum.count);
      tell(block, there->added, sequence);
      return true;
    });
  }

 private:
  template <class Block>
  static BEELINE_HOST_DEVICE void tell(const Block& block, PaddedWord& word, std::uint64_t sequence) {
    block.sync();
    if (block.thread_rank() == 0) BareWord(word.value).store(sequence, std::memory_order_release);
  }
};

struct AddInbox {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, std::uint64_t* array, const std::uint64_t* inbox,
                                      std::uint64_t count) const {
    add_words(grid.thread_rank(), grid.size(), array, inbox, count);
  }
};

class State {
 public:
  State(Bench& bench, std::uint64_t bytes)
      : bench_(bench), count_(bytes / sizeof(std::uint64_t)),
        tasks_(bench.world(), {.queues = 1, .depth = 4, .workers = 1}), values_(bench.world(), count_),
        array_(bench.world(), count_), inbox_(bench.world(), count_), reply_(bench.world(), 1),
        words_(bench.world(), 1), asked_(bench.world(), 1, Heap::pinned),
        payloads_(bench.world(), tasks_.payload_buffer_bytes(bytes)), timed_(bench) {
    const std::vector<std::uint64_t> ones(count_, 1);
    bench.world().copy(values_.data(), ones.data(), values_.bytes());
    const TaskRegistration here{array_.data(), payloads_.data(), payloads_.bytes(), nullptr};
    tasks_.register_function<Add>(here);
    tasks_.register_kernel<AddByGrid>(here, {.blocks = adding_blocks(), .threads = threads});
  }

  template <class Function>
  std::vector<double> time_tasks(Rounds rounds) {
    count_rounds(rounds);
    return timed_.run(threads, bench_.leads(), rounds, PostSums<Function>{}, tasks_.channel(), sum(), reply_.data());
  }
  std::vector<double> time_bare(Rounds rounds) {
    count_rounds(rounds);
    return timed_.run(threads, bench_.paired(), rounds, BareSums{}, sum(), inbox_.data(), array_.data(), words_.data());
  }
  std::vector<double> time_host(Rounds rounds) {
    count_rounds(rounds);
    return time_on_host(bench_, rounds, [this] { round_of_host(); });
  }
  /// Collective. Whether the second rank's array contains all sums.
  [[nodiscard]] bool is_complete() {
    tasks_.quiet();
    bench_.world().barrier();
    if (bench_.world().rank() != 1) return true;
    std::vector<std::uint64_t> found(count_);
    bench_.world().copy(found.data(), array_.data(), array_.bytes());
    return std::ranges::all_of(found, [this](std::uint64_t each) { return each == added_; });
  }
  [[nodiscard]] const char* starter() const {
    const KernelStarter by = tasks_.kernel_start(Functions::index_of<AddByGrid>()).by;
    return by == KernelStarter::device_graph ? "device_graph" : "engine";
  }

 private:
  [[nodiscard]] Sum sum() const { return {values_.data(), count_}; }
  [[nodiscard]] unsigned adding_blocks() const {
    if (!bench_.world().device().is_gpu()) return 1;
    return static_cast<unsigned>(std::clamp<std::uint64_t>(count_ / (4 * threads), 1, most_adding_blocks));
  }
  void count_rounds(Rounds rounds) {
    added_ += std::uint64_t{rounds.warm_up} + std::uint64_t{rounds.iterations} * rounds.batches;
  }
  void tell(std::uint64_t sequence) {
    signal(Thread{}, bench_.world().host_context(), asked_.data(), sequence, bench_.peer());
  }
  void await(std::uint64_t sequence) {
    bench_.require_ok(
        wait(Thread{}, bench_.world().host_context(), asked_.data(), Compare::greater_equal, sequence, bench_.peer()),
        "the other rank's part of a sum");
  }
  void round_of_host() {
    World& world = bench_.world();
    ++host_rounds_;
    if (bench_.leads()) {
      world.copy(world.at(inbox_.data(), 1), values_.data(), values_.bytes());
      tell(host_rounds_);
      await(host_rounds_);
      return;
    }
    await(host_rounds_);
    launch(world, {.blocks = adding_blocks(), .threads = threads}, AddInbox{}, array_.data(),
           static_cast<const std::uint64_t*>(inbox_.data()), count_);
    world.synchronize();
    tell(host_rounds_);
  }

  Bench& bench_;
  const std::uint64_t count_;
  Tasks<Functions> tasks_;
  SymmetricArray<std::uint64_t> values_, array_, inbox_, reply_;
  SymmetricArray<SumWords> words_;
  SymmetricArray<std::uint64_t> asked_;
  SymmetricArray<std::byte> payloads_;
  TimedKernel timed_;
  std::uint64_t added_ = 0, host_rounds_ = 0;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  bench.require_alike();
  const auto state = std::make_shared<State>(bench, std::max<std::uint64_t>(bytes / sizeof(std::uint64_t), 1) * 8);
  std::vector<Measurement> all;
  const auto add = [&](const char* called, auto time) {
    Measurement measurement{.operation = "accumulate", .method = called, .bytes = bytes, .most_iterations = 1000};
    measurement.time = time;
    measurement.verify = [=](std::uint64_t) {
      static_cast<void>(time(Rounds{}));
      return state->is_complete();
    };
    all.push_back(std::move(measurement));
  };
  add("bare/resident_block", [=](Rounds rounds) { return state->time_bare(rounds); });
  all.back().peer_of = method, all.back().stores_to_peer = true;
  add("host/copy_engine/signal", [=](Rounds rounds) { return state->time_host(rounds); });
  add(method, [=](Rounds rounds) { return state->time_tasks<Add>(rounds); });
  all.back().baseline = 0;
  all.back().settings = {{"run_by", "worker"}};
  add(method, [=](Rounds rounds) { return state->time_tasks<AddByGrid>(rounds); });
  all.back().baseline = 0;
  all.back().settings = {{"run_by", state->starter()}};
  return all;
}

constexpr SizeRange sizes{64, 1 << 20};
const ListedCases cases(Command::methods, {{"accumulate", method, true, prepare, sizes}});

}  // namespace

}  // namespace beeline::bench::accumulate_cases
