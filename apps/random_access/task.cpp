// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method task: a task brings up to 1,024 numbers to their owner, and a worker of the owner applies them. There are no
/// rounds: a run is over when all tasks have run. Source: seed 003, Extended Task Queuing.

#include "task.hpp"

#include <algorithm>

#include "beeline/host/tasks.hpp"
#include "making.hpp"
#include "method.hpp"

namespace random_access {

namespace {

/// On GPUs a worker is a warp; with four times as many on twice as many multiprocessors a single GPU is a third slower,
/// and two GPUs 6 % faster (README), and two ranks of one GPU do not fit. Host ranks may share cores: a poster whose
/// queue is full yields its core to a worker, less often if the queue is deep.
constexpr beeline::TaskOptions shape(bool gpus) {
  return gpus ? beeline::TaskOptions{.queues = 64, .depth = 8, .workers = 128, .multiprocessors = 16}
              : beeline::TaskOptions{.queues = 1, .depth = 32, .workers = 1};
}

struct ApplyNumbers;
using Functions = beeline::TaskList<ApplyNumbers>;

/// Applies the numbers of its payload to this rank's words. On a host rank the only worker changes all of them, also
/// those of the rank's own numbers.
struct ApplyNumbers {
  static constexpr const char* name = "apply_numbers";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context&, const beeline::Task& task) const {
    const Target& target = *static_cast<const Target*>(task.object);
    const Numbers arrived{static_cast<const std::uint64_t*>(task.payload), task.payload_bytes / sizeof(std::uint64_t)};
#if BEELINE_ON_GPU
    apply_numbers(group, target, arrived, false);
#else
    static_cast<void>(group);  // a worker of a host rank is one thread
    apply_alone(target, arrived);
#endif
  }
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
#if !BEELINE_ON_GPU
    if (grid_.block().size() == 1) return make_alone(now);
#endif
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
#if !BEELINE_ON_GPU
  /// As `make_numbers`, for a block of one thread of a host rank.
  void make_alone(std::uint64_t count) {
    std::uint64_t* ends[most_exchanging_ranks];
    for (std::uint32_t rank = 0; rank < ctx_.size; ++rank) ends[rank] = numbers_ + rank * box_words;
    number_ = make_and_apply(ends, target_, number_, count, {nullptr, 0});
    for (std::uint32_t rank = 0; rank < ctx_.size; ++rank)
      counts_[rank] = static_cast<std::uint32_t>(ends[rank] - (numbers_ + rank * box_words));
  }
#endif
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

struct PostNumbers {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Target target,
                                      beeline::TaskChannel tasks, Buffers buffers, Piece piece) const {
#if BEELINE_ON_GPU
    __shared__ std::uint32_t counts[most_exchanging_ranks];
#else
    std::uint32_t* const counts = buffers.counts + std::size_t{grid.block_rank()} * ctx.size;
#endif
    Poster<Grid>(grid, ctx, target, buffers, counts).run(piece, tasks);
  }
};

class ByTasks final : public Method {
 public:
  explicit ByTasks(Table& table)
      : Method(table), tasks_(world(), shape(world().device().is_gpu())),
        payloads_(world(), tasks_.payload_buffer_bytes(look_ahead * sizeof(std::uint64_t))), target_(world(), 1),
        // Before this point the workers have reserved their part of the device.
        blocks_(table.blocks<PostNumbers, Target, beeline::TaskChannel, Buffers, Piece>()),
        numbers_(world(), std::size_t{blocks_} * table.layout().ranks * box_words),
        counts_(world(), std::size_t{blocks_} * table.layout().ranks) {
    world().copy(target_.data(), &table.target(), sizeof(Target));
    tasks_.register_function<ApplyNumbers>(
        {.object = target_.data(), .payloads = payloads_.data(), .payload_bytes = payloads_.bytes()});
  }

  void run(const Run& run) override {
    const Piece piece = run.of(static_cast<std::uint32_t>(world().rank()), table().layout().ranks);
    beeline::launch(world(), {.blocks = blocks_, .threads = block_threads, .waits = true}, PostNumbers{},
                    table().target(), tasks_.channel(), Buffers{numbers_.data(), counts_.data()}, piece);
    world().synchronize();
    tasks_.quiet();
  }

 private:
  beeline::Tasks<Functions> tasks_;
  beeline::SymmetricArray<std::byte> payloads_;
  beeline::SymmetricArray<Target> target_;
  const unsigned blocks_;
  beeline::SymmetricArray<std::uint64_t> numbers_;
  beeline::SymmetricArray<std::uint32_t> counts_;
};

}  // namespace

std::size_t task_bytes(int ranks, bool gpus) {
  const beeline::TaskOptions options = shape(gpus);
  const auto peers = static_cast<std::size_t>(std::min(ranks, most_exchanging_ranks));
  const std::size_t payload = box_words * sizeof(std::uint64_t), words = beeline::task_words * 16;
  const std::size_t places = std::size_t{options.queues} * peers * options.depth;
  return places * (payload + 2 * words) + peers * payload * (gpus ? most_blocks : 1) + (std::size_t{1} << 20);
}

MethodInfo task() {
  return MethodInfo::of<ByTasks>({"task",
                                  "blocks send the numbers for an owner as a task, and a worker of the owner applies "
                                  "them",
                                  "task/peer/signal", why_too_many});
}

}  // namespace random_access
