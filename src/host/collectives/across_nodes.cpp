// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/across_nodes.hpp"

#include <algorithm>
#include <vector>

#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/node_movement.hpp"
#include "host/collectives/node_reduction.hpp"
#include "host/world_implementation.hpp"

namespace beeline::detail {

namespace {

/// Chunks that hide a round trip; together, of all peers, about this much memory for each direction.
constexpr std::uint32_t chunk_depth = 4;
constexpr std::size_t all_chunks = std::size_t{1} << 20, least_chunk = 4096, most_chunk = std::size_t{64} << 10;

PairSizes sizes_for(const Team& team) {
  const std::size_t share = all_chunks / (chunk_depth * static_cast<std::size_t>(team.size()));
  return {chunk_depth, std::clamp(share, least_chunk, most_chunk) / 64 * 64};
}

NodeMap map_of(const Team& team) {
  std::vector<int> nodes;
  for (int member = 0; member < team.size(); ++member)
    nodes.push_back(team.world().implementation().members[static_cast<std::size_t>(team.world_rank(member))].node);
  return NodeMap(nodes);
}

/// This member is in a call, alone on its channel.
class OpenCall {
 public:
  OpenCall(const Context& ctx, const PairChannel& channel, const CallDescription& call) : state_(*channel.state) {
    if (DeviceAtomic<std::uint32_t>(state_.is_busy).exchange(1, cuda::memory_order_acquire) != 0) {
      static_cast<void>(
          refuse_call(ctx, {CallDifference::session_in_use, ctx.rank, {state_.packed, state_.count}, {}}));
      return;
    }
    is_open_ = true;
    ++state_.calls, state_.packed = call.packed(), state_.count = call.count;
  }
  ~OpenCall() {
    if (is_open_) DeviceAtomic<std::uint32_t>(state_.is_busy).store(0, cuda::memory_order_release);
  }
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;
  [[nodiscard]] explicit operator bool() const { return is_open_; }

 private:
  PairState& state_;
  bool is_open_ = false;
};

// What fails in these kernels is recorded where it fails.

struct NodeMovementKernel {
  template <class Grid>
  void operator()(Grid& grid, const Context& ctx, PairChannel channel, NodeMap nodes, MovementPlan plan) const {
    if (grid.thread_rank() != 0) return;
    if (const OpenCall open(ctx, channel, plan.call); open) static_cast<void>(move_across({ctx, channel}, nodes, plan));
  }
};

struct NodeVariedKernel {
  template <class Grid>
  void operator()(Grid& grid, const Context& ctx, PairChannel channel, NodeMap nodes, MovementPlan plan,
                  const PieceValues<max_ranks>& values) const {
    const auto& table = values.values;
    plan.table = {table[0], table[1], table[2], table[3]};
    NodeMovementKernel{}(grid, ctx, channel, nodes, plan);
  }
};

struct NodeReductionKernel {
  template <class Grid>
  void operator()(Grid& grid, const Context& ctx, PairChannel channel, NodeMap nodes, NodeReduction reduction) const {
    if (grid.thread_rank() != 0) return;
    if (const OpenCall open(ctx, channel, reduction.call); open)
      static_cast<void>(reduce_across({ctx, channel}, nodes, reduction));
  }
};

/// A reduction of nothing, once all that this member has put is in place.
struct NodeMeetingKernel {
  template <class Grid>
  void operator()(Grid& grid, const Context& ctx, PairChannel channel, NodeMap nodes, NodeReduction nothing) const {
    if (grid.thread_rank() != 0) return;
    for (std::uint32_t queue = 0; queue < command_rings; ++queue)
      if (quiet(Thread{}, ctx, Queue{queue}) != Status::ok) return;
    NodeReductionKernel{}(grid, ctx, channel, nodes, nothing);
  }
};

}  // namespace

AcrossNodes::AcrossNodes(Team& team) : team_(team), nodes_(map_of(team)), memory_(team, sizes_for(team)) {}

void AcrossNodes::move(const LaunchOptions& options, const MovementPlan& plan) {
  launch(team_, options, NodeMovementKernel{}, memory_.channel(), nodes_, plan);
}

void AcrossNodes::move(const LaunchOptions& options, const MovementPlan& plan, const PieceValues<max_ranks>& values) {
  launch(team_, options, NodeVariedKernel{}, memory_.channel(), nodes_, plan, values);
}

void AcrossNodes::reduce(const LaunchOptions& options, const VectorCall& call) {
  const NodeReduction reduction{call.what, static_cast<std::byte*>(call.destination),
                                static_cast<const std::byte*>(call.source), &wide_reducer(call.what.element.type),
                                call.what.count};
  launch(team_, options, NodeReductionKernel{}, memory_.channel(), nodes_, reduction);
}

void AcrossNodes::meet(const LaunchOptions& options, const CallDescription& call) {
  const NodeReduction nothing{call, nullptr, nullptr, &wide_reducer(ElementType::uint8), 0};
  launch(team_, options, NodeMeetingKernel{}, memory_.channel(), nodes_, nothing);
}

}  // namespace beeline::detail
