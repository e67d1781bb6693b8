// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scheme task: one kernel for all reductions, which sends chunks as the payload of tasks. A worker of the next rank
/// adds a chunk to its own, or stores the result, and signals its rank's kernel, which sends it on. Source: seed 003,
/// Extended Task Queuing.

#include "task.hpp"

#include <algorithm>

#include "beeline/host/tasks.hpp"
#include "lane.hpp"

namespace ring_reduction {

namespace {

struct Arrive;
using Functions = beeline::TaskList<Arrive>;

/// Stores its payload in the inbox, or in the vector. Places are told from the first signal on: symmetric memory lies
/// alike on all ranks.
struct Arrive {
  static constexpr const char* name = "arrive";
  struct Arguments {
    std::int64_t place_bytes;  ///< from the first signal
    std::uint64_t number;      ///< the signal's value
    std::uint32_t lane;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context& ctx,
                                      const beeline::Task& task) const {
    const Arguments& it = task.as<Arguments>();
    auto* const arrived = static_cast<beeline::PaddedWord*>(task.object);
    beeline::detail::copy_bytes(group, static_cast<std::byte*>(task.object) + it.place_bytes, task.payload,
                                task.payload_bytes);
    beeline::signal(group, ctx, &arrived[it.lane].value, it.number, ctx.rank);
  }
};

struct PostingTasks {
  /// A queue for each, and a worker for each queue.
  static constexpr unsigned lanes = most_task_lanes;
  beeline::TaskChannel tasks;

  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Grid& grid, const beeline::Context& ctx,
                                                         const Lanes& all, const Transfer& transfer, std::uint64_t*,
                                                         std::uint64_t number) const {
    all.prepare(grid.block(), transfer);
    const auto place =
        reinterpret_cast<std::byte*>(all.destination(transfer)) - reinterpret_cast<std::byte*>(all.arrived);
    const Arrive::Arguments arguments{place, number, grid.block_rank()};
    beeline::TaskPost post =
        beeline::task_of<Functions, Arrive>(arguments, all.ring.next(), grid.block_rank() % tasks.queues);
    post.payload = all.data + transfer.sends.first, post.payload_bytes = transfer.sends.count * sizeof(float);
    return beeline::post_task(grid.block(), ctx, tasks, post);
  }
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status end(const Grid&, const beeline::Context&) const {
    return beeline::Status::ok;  // the last step's signals say that all tasks for this rank have run
  }
};

class ByTasks final : public LaneScheme<PostingTasks> {
 public:
  explicit ByTasks(Vectors& vectors)
      : LaneScheme(vectors, std::min(vectors.shape().put_chunk_bytes, task_chunk_bytes)),
        tasks_(world(), {.queues = lanes(),
                         .depth = task_depth,
                         .workers = lanes(),
                         .multiprocessors = std::min(lanes(), most_task_multiprocessors)}),
        payloads_(world(), tasks_.payload_buffer_bytes(std::max(grain, ring().chunk_elements) * sizeof(float))) {
    tasks_.register_function<Arrive>(
        {.object = arrived(), .payloads = payloads_.data(), .payload_bytes = payloads_.bytes()});
  }

 private:
  [[nodiscard]] PostingTasks sender() const override { return {tasks_.channel()}; }

  beeline::Tasks<Functions> tasks_;
  beeline::SymmetricArray<std::byte> payloads_;
};

}  // namespace

SchemeInfo task() {
  return SchemeInfo::of<ByTasks>(
      {"task",
       "one kernel for all reductions: blocks add chunks and send them as tasks, which workers of the next rank store",
       "task/peer/signal"});
}

}  // namespace ring_reduction
