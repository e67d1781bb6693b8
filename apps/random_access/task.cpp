// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method task: a task brings up to 1,024 numbers to their owner, and a worker of the owner applies them, or the only
/// thread of a host rank itself. There are no rounds: a run is over when all tasks have run. Source: seed 003, Extended
/// Task Queuing.

#include "task.hpp"

#include <algorithm>

#include "beeline/host/tasks.hpp"
#include "making.hpp"
#include "method.hpp"

namespace random_access {

namespace {

/// On GPUs a worker is a warp; with four times as many on twice as many multiprocessors a single GPU is a third slower,
/// and two GPUs 6 % faster (README), and two ranks of one GPU do not fit. Host ranks may share cores: a poster whose
/// queue is full yields its core to another rank, less often if the queue is deep.
constexpr beeline::TaskOptions shape(bool gpus) {
  return gpus ? beeline::TaskOptions{.queues = 64, .depth = 8, .workers = 128, .multiprocessors = 16}
              : beeline::TaskOptions{.queues = 1, .depth = 32, .workers = 1};
}

struct ApplyNumbers;
struct Finish;
using Functions = beeline::TaskList<ApplyNumbers, Finish>;

/// The object of the tasks on a rank.
struct Owner {
  Target target;
  std::uint64_t finished;  ///< count of `Finish` tasks that have run
};

#if !BEELINE_ON_GPU
/// The numbers that the only thread of a host rank makes: at most `look_ahead`, then it posts them. Tasks that this
/// thread runs meanwhile make some, too, so that loads of words overlap with arithmetic.
class Making {
 public:
  Making(const Target& target, const Piece& piece)
      : target_(target), number_(starts(piece.first)), left_(piece.count) {}

  /// Begins to fill boxes, a box for each rank.
  void begin(std::uint64_t* const* boxes) {
    for (std::uint32_t rank = 0; rank < target_.layout.ranks; ++rank) ends_[rank] = boxes[rank];
    room_ = std::min(left_, look_ahead);
  }
  /// Applies numbers of this rank's words. Makes as many new ones, but in a round at most `look_ahead` in all.
  void apply(Numbers arrived) { make(std::min(arrived.count, room_), arrived); }
  void make_rest() { make(room_, {nullptr, 0}); }
  [[nodiscard]] bool has_room() const { return room_ > 0; }
  [[nodiscard]] bool is_over() const { return left_ == 0; }
  /// Behind the last number for a rank.
  [[nodiscard]] const std::uint64_t* end(std::uint32_t rank) const { return ends_[rank]; }

  /// What the tasks that this thread runs may fill; nullptr: nothing, as on a worker's own thread.
  static Making*& of_thread() {
    thread_local Making* making = nullptr;
    return making;
  }

 private:
  void make(std::uint64_t count, Numbers arrived) {
    number_ = make_and_apply(ends_, target_, number_, count, arrived);
    room_ -= count, left_ -= count;
  }

  const Target target_;
  std::uint64_t number_, left_, room_ = 0;
  std::uint64_t* ends_[most_exchanging_ranks];
};
#endif

/// Applies the numbers of its payload to this rank's words. On a host rank the only worker changes all of them, also
/// those of the rank's own numbers.
struct ApplyNumbers {
  static constexpr const char* name = "apply_numbers";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context&, const beeline::Task& task) const {
    const Target& target = static_cast<const Owner*>(task.object)->target;
    const Numbers arrived{static_cast<const std::uint64_t*>(task.payload), task.payload_bytes / sizeof(std::uint64_t)};
#if BEELINE_ON_GPU
    apply_numbers(group, target, arrived, false);
#else
    static_cast<void>(group);  // a worker of a host rank is one thread
    if (Making* const making = Making::of_thread(); making != nullptr)
      making->apply(arrived);
    else
      apply_alone(target, arrived);
#endif
  }
};

/// The last task of a rank that has one thread. Its completions are counted.
struct Finish {
  static constexpr const char* name = "finish";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group&, const beeline::Context&, const beeline::Task&) const {}
};

/// Buffers in which blocks collect numbers.
struct Buffers {
  std::uint64_t* numbers;  ///< [blocks, ranks, box_words] symmetric, since tasks for other nodes need it
  std::uint32_t* counts;   ///< [blocks, ranks] on host ranks; GPUs: shared memory
};

/// Makes the numbers of a block, and posts them.
template <class Grid>
class Poster {
 public:
  BEELINE_HOST_DEVICE Poster(const Grid& grid, const beeline::Context& ctx, const Target& target,
                             const Buffers& buffers, std::uint32_t* counts)
      : grid_(grid), ctx_(ctx), target_(target),
        numbers_(buffers.numbers + std::uint64_t{grid.block_rank()} * ctx.size * box_words), counts_(counts) {}

  BEELINE_HOST_DEVICE void run(const Piece& piece, const beeline::TaskChannel& tasks) {
    const auto& block = grid_.block();
    const Piece mine = part_of(piece.count, grid_.thread_rank(), grid_.size());
    number_ = starts(piece.first + mine.first), left_ = mine.count;
    do {
      for (std::uint32_t rank = block.thread_rank(); rank < ctx_.size; rank += block.size()) counts_[rank] = 0;
      block.sync();
      make_numbers(look_ahead / block.size());
      block.sync();
      if (!post(tasks)) return;
    } while (block.any(left_ > 0));
  }

 private:
  BEELINE_HOST_DEVICE void make_numbers(std::uint64_t most) {
    const std::uint64_t now = left_ < most ? left_ : most;
    left_ -= now;
    const Target target = target_;  // copies: the compiler assumes that stores of numbers may change members
    std::uint64_t number = number_;
    for (std::uint64_t i = 0; i < now; ++i) {
      number = next_number(number);
      const std::uint64_t index = target.layout.index_of(number);
      const std::uint32_t owner = target.layout.owner(index);
      if (beeline::detail::executor == beeline::DeviceKind::gpu && owner == ctx_.rank)
        apply(target.own(index), number, false);
      else
        numbers_[owner * box_words + count_one(counts_[owner])] = number;
    }
    number_ = number;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t count_one(std::uint32_t& count) const {
    return grid_.block().size() == 1
               ? count++
               : beeline::detail::DeviceAtomic<std::uint32_t>(count).fetch_add(1, std::memory_order_relaxed);
  }

  [[nodiscard]] BEELINE_HOST_DEVICE bool post(const beeline::TaskChannel& tasks) const {
    const ApplyNumbers::Arguments arguments;
    for (std::uint32_t step = 1; step <= ctx_.size; ++step) {  // each rank begins with another one
      const std::uint32_t rank = (ctx_.rank + step) % ctx_.size;
      if (counts_[rank] == 0) continue;
      beeline::TaskPost post =
          beeline::task_of<Functions, ApplyNumbers>(arguments, rank, grid_.block_rank() % tasks.queues);
      post.payload = numbers_ + rank * box_words, post.payload_bytes = counts_[rank] * sizeof(std::uint64_t);
      post.order = beeline::Order::relaxed;  // the worker reads only the payload
      if (beeline::post_task(grid_.block(), ctx_, tasks, post) != beeline::Status::ok) return false;
    }
    return true;
  }

  const Grid& grid_;
  const beeline::Context& ctx_;
  const Target& target_;
  std::uint64_t* const numbers_;
  std::uint32_t* const counts_;
  std::uint64_t number_ = 0, left_ = 0;
};

#if !BEELINE_ON_GPU
/// The only thread of a host rank: makes numbers, posts those of other ranks, and runs the tasks that arrive. The
/// rank's own numbers wait in a box until the next ones are made.
class LonePoster {
 public:
  LonePoster(const beeline::Context& ctx, const beeline::TaskChannel& tasks,
             const beeline::TaskRunner<Functions>& runner, std::uint64_t* numbers)
      : ctx_(ctx), tasks_(tasks), runner_(runner), numbers_(numbers) {
    static constexpr ApplyNumbers::Arguments arguments;
    for (std::uint32_t rank = 0; rank < ctx.size; ++rank) {
      posts_[rank] = beeline::task_of<Functions, ApplyNumbers>(arguments, rank);
      posts_[rank].order = beeline::Order::relaxed;  // the function reads only the payload
    }
  }

  ///   finished  counts the ranks that have posted their last task
  ///   runs      the value of `finished` before this run, for each rank
  void run(const Target& target, const Piece& piece, const std::uint64_t& finished, std::uint64_t runs) {
    Making making(target, piece);
    Numbers own{nullptr, 0};
    for (std::uint64_t turn = 0; !making.is_over(); ++turn) {
      boxes_[ctx_.rank] = numbers_ + (turn % 2 == 0 ? ctx_.rank : ctx_.size) * box_words;
      if (!reserve()) return;
      making.begin(boxes_);
      if (!apply(making, own)) return;
      making.make_rest();
      own = {boxes_[ctx_.rank], count(making, ctx_.rank)};
      if (!post(making)) return;
    }
    if (apply(making, own)) finish(finished, runs);
  }

 private:
  [[nodiscard]] std::uint64_t count(const Making& making, std::uint32_t rank) const {
    return static_cast<std::uint64_t>(making.end(rank) - boxes_[rank]);
  }
  /// Applies the rank's own numbers and, while there is room for more, those of tasks. Not while the worker's own
  /// thread applies some.
  [[nodiscard]] bool apply(Making& making, Numbers own) const {
    const beeline::Awaited awaited{beeline::Operation::task, ctx_.rank, 0, 1};
    const auto in_turn = [&](const beeline::TaskTurn<Functions>& turn) {
      making.apply(own);
      Making::of_thread() = &making;
      while (making.has_room() && turn.run(1) != 0) {
      }
      Making::of_thread() = nullptr;
    };
    return beeline::run_tasks_until(ctx_, runner_, awaited, beeline::Timeout::none(), [&](std::uint64_t&) {
             return beeline::between_tasks(runner_, 0, in_turn);
           }) == beeline::Status::ok;
  }
  /// Each rank begins with another one.
  [[nodiscard]] std::uint32_t peer(std::uint32_t step) const { return (ctx_.rank + step) % ctx_.size; }
  /// Makes the boxes: for ranks of this node in their queues, for others in this rank's memory.
  [[nodiscard]] bool reserve() {
    for (std::uint32_t step = 1; step < ctx_.size; ++step) {
      const std::uint32_t rank = peer(step);
      posts_[rank].payload_bytes = box_words * sizeof(std::uint64_t);
      const beeline::Status status = beeline::reserve_task(ctx_, tasks_, posts_[rank], spaces_[rank], runner_);
      if (status != beeline::Status::ok && status != beeline::Status::unreachable) return false;
      boxes_[rank] = status == beeline::Status::ok ? static_cast<std::uint64_t*>(spaces_[rank].payload)
                                                   : numbers_ + rank * box_words;
    }
    return true;
  }
  [[nodiscard]] bool post(const Making& making) {
    for (std::uint32_t step = 1; step < ctx_.size; ++step) {
      const std::uint32_t rank = peer(step);
      beeline::TaskPost& post = posts_[rank];
      post.payload_bytes = count(making, rank) * sizeof(std::uint64_t);
      if (spaces_[rank].payload != nullptr) {
        beeline::post_reserved(ctx_, tasks_, post, spaces_[rank]);
      } else if (post.payload_bytes != 0) {
        post.payload = boxes_[rank];
        if (beeline::post_task(beeline::Thread{}, ctx_, tasks_, post, runner_) != beeline::Status::ok) return false;
      }
    }
    return true;
  }
  /// Runs tasks until those of all ranks have run, so that none waits for the worker's own thread.
  void finish(const std::uint64_t& finished, std::uint64_t runs) const {
    for (std::uint32_t rank = 0; rank < ctx_.size; ++rank)
      if (beeline::post_task(beeline::Thread{}, ctx_, tasks_, beeline::task_of<Functions, Finish>({}, rank), runner_) !=
          beeline::Status::ok)
        return;
    const std::uint64_t all = (runs + 1) * ctx_.size;
    const beeline::Awaited awaited{beeline::Operation::task, beeline::no_peer, runs, all};
    if (beeline::run_tasks_until(ctx_, runner_, awaited, beeline::Timeout::none(), [&](std::uint64_t& observed) {
          observed = beeline::load_value(&finished);
          return observed >= all;
        }) != beeline::Status::ok)
      return;
    for (std::uint32_t rank = 0; rank < ctx_.size; ++rank)
      if (beeline::quiet(beeline::Thread{}, ctx_, tasks_, rank, 0, runner_) != beeline::Status::ok) return;
  }

  const beeline::Context& ctx_;
  const beeline::TaskChannel& tasks_;
  const beeline::TaskRunner<Functions>& runner_;
  std::uint64_t* const numbers_;  ///< [ranks + 1, box_words] two boxes of this rank, and for ranks of other nodes
  std::uint64_t* boxes_[most_exchanging_ranks];
  beeline::TaskPost posts_[most_exchanging_ranks];
  beeline::TaskSpace spaces_[most_exchanging_ranks] = {};
};
#endif

/// What a rank does in one run.
struct Work {
  Piece piece;
  Owner* owner;
  std::uint64_t runs;  ///< earlier runs
};

struct PostNumbers {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Target target,
                                      beeline::TaskChannel tasks,
                                      [[maybe_unused]] beeline::TaskRunner<Functions> runner, Buffers buffers,
                                      Work work) const {
#if BEELINE_ON_GPU
    __shared__ std::uint32_t counts[most_exchanging_ranks];
#else
    if (grid.size() == 1)
      return LonePoster(ctx, tasks, runner, buffers.numbers).run(target, work.piece, work.owner->finished, work.runs);
    std::uint32_t* const counts = buffers.counts + std::size_t{grid.block_rank()} * ctx.size;
#endif
    Poster<Grid>(grid, ctx, target, buffers, counts).run(work.piece, tasks);
  }
};

class ByTasks final : public Method {
 public:
  explicit ByTasks(Table& table)
      : Method(table), tasks_(world(), shape(world().device().is_gpu())),
        payloads_(world(), tasks_.payload_buffer_bytes(box_words * sizeof(std::uint64_t))), owner_(world(), 1),
        // Before this point the workers have reserved their part of the device.
        blocks_(
            table.blocks<PostNumbers, Target, beeline::TaskChannel, beeline::TaskRunner<Functions>, Buffers, Work>()),
        numbers_(world(), (std::size_t{blocks_} * table.layout().ranks + 1) * box_words),
        counts_(world(), std::size_t{blocks_} * table.layout().ranks) {
    const Owner owner{table.target(), 0};
    world().copy(owner_.data(), &owner, sizeof owner);
    tasks_.register_function<ApplyNumbers>(
        {.object = owner_.data(), .payloads = payloads_.data(), .payload_bytes = payloads_.bytes()});
    tasks_.register_function<Finish>({.completion = &owner_.data()->finished});
  }

  void run(const Run& run) override {
    const Work work{run.of(static_cast<std::uint32_t>(world().rank()), table().layout().ranks), owner_.data(), runs_++};
    beeline::launch(world(), {.blocks = blocks_, .threads = block_threads, .waits = true}, PostNumbers{},
                    table().target(), tasks_.channel(), tasks_.runner(), Buffers{numbers_.data(), counts_.data()},
                    work);
    world().synchronize();
    tasks_.quiet();
  }

 private:
  beeline::Tasks<Functions> tasks_;
  beeline::SymmetricArray<std::byte> payloads_;
  beeline::SymmetricArray<Owner> owner_;
  const unsigned blocks_;
  beeline::SymmetricArray<std::uint64_t> numbers_;
  beeline::SymmetricArray<std::uint32_t> counts_;
  std::uint64_t runs_ = 0;
};

}  // namespace

std::size_t task_bytes(int ranks, bool gpus) {
  const beeline::TaskOptions options = shape(gpus);
  const auto peers = static_cast<std::size_t>(std::min(ranks, most_exchanging_ranks));
  const std::size_t payload = box_words * sizeof(std::uint64_t), words = beeline::task_words * 16;
  const std::size_t places = std::size_t{options.queues} * peers * options.depth;
  return places * (payload + 2 * words) + (peers * (gpus ? most_blocks : 1) + 1) * payload + (std::size_t{1} << 20);
}

MethodInfo task() {
  return MethodInfo::of<ByTasks>({"task",
                                  "blocks send the numbers for an owner as a task, and a worker of the owner applies "
                                  "them",
                                  "task/peer/signal", why_too_many});
}

}  // namespace random_access
