// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method task: one kernel for all iterations, which sends segments of the outermost rows as the payload of tasks. A
/// worker of the neighbour stores a segment in the halo, and signals it. Source: seed 003, Extended Task Queuing.

#include <algorithm>

#include "beeline/host/tasks.hpp"
#include "persistent.hpp"

namespace jacobi {

namespace {

struct Arrive;
using Functions = beeline::TaskList<Arrive>;

/// Stores its payload, a segment, in a halo. Offsets are relative to the first signal: symmetric memory has the same
/// layout on all ranks.
struct Arrive {
  static constexpr const char* name = "arrive";
  struct Arguments {
    std::int64_t halo_bytes;  ///< from the first signal to the halo
    std::uint64_t signal, tag;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context& ctx,
                                      const beeline::Task& task) const {
    const Arguments& it = task.as<Arguments>();
    auto* const signals = static_cast<std::uint64_t*>(task.object);
    beeline::detail::copy_bytes(group, static_cast<std::byte*>(task.object) + it.halo_bytes, task.payload,
                                task.payload_bytes);
    beeline::signal(group, ctx, signals + it.signal, it.tag, ctx.rank);
  }
};

struct PostingTasks {
  static constexpr int segment_quads = 64;  // 1 KB, which the warp of a worker copies at once
  beeline::TaskChannel tasks;
  std::uint64_t* arrived;  ///< the first of the signals
  std::uint32_t lower_peer, upper_peer;

  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Grid& grid, const beeline::Context& ctx,
                                                         const Message& message) const {
    const auto number = static_cast<std::uint64_t>(message.signal - arrived);
    const Arrive::Arguments arguments{
        reinterpret_cast<std::byte*>(message.destination) - reinterpret_cast<std::byte*>(arrived), number, message.tag};
    beeline::TaskPost post =
        beeline::task_of<Functions, Arrive>(arguments, message.peer, static_cast<std::uint32_t>(number % tasks.queues));
    post.payload = message.source, post.payload_bytes = message.count * sizeof(float);
    post.order = beeline::Order::relaxed;  // the worker reads only the payload
    return beeline::post_task(grid.block(), ctx, tasks, post);
  }
  /// When the kernel has ended, the host may refill the fields or read them.
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status end(const Grid& grid, const beeline::Context& ctx) const {
    auto status = beeline::Status::ok;
    for (std::uint32_t queue = grid.block_rank(); queue < tasks.queues; queue += grid.blocks())
      for (const std::uint32_t peer : {lower_peer, upper_peer})
        if (status == beeline::Status::ok) status = beeline::quiet(grid.block(), ctx, tasks, peer, queue);
    return status;
  }
};

class ByTasks final : public Persistent<PostingTasks> {
 public:
  explicit ByTasks(Domain& domain)
      : Persistent(domain), tasks_(world(), options_for(sides * segments())),
        payloads_(world(),
                  tasks_.payload_buffer_bytes(
                      static_cast<std::size_t>(domain.segment_quads(PostingTasks::segment_quads)) * sizeof(float[4]))) {
    tasks_.register_function<Arrive>(
        {.object = arrived(), .payloads = payloads_.data(), .payload_bytes = payloads_.bytes()});
  }

 private:
  static constexpr std::uint32_t depth = Domain::task_depth, most_queues = 8;

  static beeline::TaskOptions options_for(unsigned signals) {
    const std::uint32_t queues = std::min(most_queues, signals);
    return {.queues = queues, .depth = depth, .workers = queues};
  }
  [[nodiscard]] PostingTasks sender() const override {
    const Edges& edges = domain().edges();
    const auto own = static_cast<std::uint32_t>(world().rank());
    return {tasks_.channel(), arrived(), edges.side[lower].open() ? edges.side[lower].peer : own,
            edges.side[upper].open() ? edges.side[upper].peer : own};
  }

  beeline::Tasks<Functions> tasks_;
  beeline::SymmetricArray<std::byte> payloads_;
};

}  // namespace

MethodInfo task() {
  return MethodInfo::of<ByTasks>(
      {"task", "one kernel for all iterations: blocks send segments as tasks, and workers of the neighbour store them",
       "task/peer/signal"});
}

}  // namespace jacobi
