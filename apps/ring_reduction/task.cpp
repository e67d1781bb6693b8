// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scheme task: one kernel for all reductions. Its blocks add chunks, store each chunk at the next rank, and post a
/// task behind it. The task, run by a worker of the next rank, signals the kernel there, which adds the chunk and sends
/// it on. A message of seed 003's Extended Task Queuing is such a put followed by a command. As a payload of the task
/// the chunk would be copied once more.

#include "task.hpp"

#include <algorithm>

#include "beeline/host/tasks.hpp"
#include "lane.hpp"

namespace ring_reduction {

namespace {

struct Arrive;
using Functions = beeline::TaskList<Arrive>;

/// Notifies the kernel of its rank that a chunk has arrived.
struct Arrive {
  static constexpr const char* name = "arrive";
  struct Arguments {
    std::uint64_t number;  ///< the signal's value
    std::uint32_t lane;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context& ctx,
                                      const beeline::Task& task) const {
    const Arguments& it = task.as<Arguments>();
    auto* const arrived = static_cast<beeline::PaddedWord*>(task.object);
    beeline::signal(group, ctx, &arrived[it.lane].value, it.number, ctx.rank);
  }
};

struct PostingTasks {
  static constexpr LaneShape on_gpus{most_task_lanes, 1};
  beeline::TaskChannel tasks;

  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Block& block, const beeline::Context& ctx,
                                                         const Lanes& all, const Transfer& transfer, const Place& place,
                                                         std::uint64_t number) const {
    all.store(block, ctx, transfer);
    const Arrive::Arguments arguments{number, place.lane};
    return beeline::post_task(
        block, ctx, tasks, beeline::task_of<Functions, Arrive>(arguments, all.ring.next(), place.lane % tasks.queues));
  }
};

class ByTasks final : public LaneScheme<PostingTasks> {
 public:
  explicit ByTasks(Vectors& vectors)
      : LaneScheme(vectors, vectors.shape().task_chunk_bytes),
        tasks_(world(), {.queues = lanes().lanes,
                         .depth = task_depth,
                         .workers = lanes().lanes,
                         .multiprocessors = std::min(lanes().lanes, most_task_multiprocessors)}) {
    tasks_.register_function<Arrive>({.object = arrived()});
  }

 private:
  [[nodiscard]] PostingTasks sender() const override { return {tasks_.channel()}; }

  beeline::Tasks<Functions> tasks_;
};

}  // namespace

SchemeInfo task() {
  return SchemeInfo::of<ByTasks>(
      {"task",
       "one kernel for all reductions: blocks store each chunk at the next rank, whose workers run a task behind it",
       "task/peer/signal"});
}

}  // namespace ring_reduction
