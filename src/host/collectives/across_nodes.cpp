// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/across_nodes.hpp"

#include <algorithm>
#include <tuple>

#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/node_movement.hpp"
#include "host/collectives/node_reduction.hpp"
#include "host/collectives/round_kernels.hpp"
#include "host/collectives/short_reduction.hpp"
#include "host/world/membership.hpp"
#include "host/world/part.hpp"

namespace beeline::detail {

namespace {

/// Chunks in flight that hide a round trip, and the approximate memory of the chunks of all peers for each direction.
constexpr std::uint32_t chunk_depth = 4;
constexpr std::size_t all_chunks = std::size_t{2} << 20, least_chunk = 4096, most_chunk = std::size_t{128} << 10,
                      short_chunk = 1024;

/// Channels other than the first are of kernels alone, whose calls are short.
std::vector<PairSizes> sizes_for(const Team& team, unsigned sessions) {
  const std::size_t share = all_chunks / (chunk_depth * static_cast<std::size_t>(team.size()));
  std::vector sizes(sessions + (kernels_share_links(team) ? 0 : 1), PairSizes{chunk_depth, short_chunk});
  sizes.front().chunk_bytes = std::clamp(share, least_chunk, most_chunk) / 64 * 64;
  return sizes;
}

/// Exists while this member is in a call. Checks that no other call uses the channel, and that all chunks of earlier
/// calls have been taken.
class OpenCall {
 public:
  OpenCall(const Context& ctx, const PairChannel& channel, const CallDescription& call) : state_(*channel.state) {
    if (DeviceAtomic<std::uint32_t>(state_.is_busy).exchange(1, std::memory_order_acquire) != 0) {
      static_cast<void>(
          refuse_call(ctx, {CallDifference::session_in_use, ctx.rank, {state_.packed, state_.count}, {}}));
      return;
    }
    is_open_ = true;
    state_.enter(call);
    has_begun_ = PairLinks(ctx, channel).check_taken() == Status::ok;
  }
  ~OpenCall() {
    if (is_open_) DeviceAtomic<std::uint32_t>(state_.is_busy).store(0, std::memory_order_release);
  }
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;
  [[nodiscard]] explicit operator bool() const { return has_begun_; }

 private:
  PairState& state_;
  bool is_open_ = false, has_begun_ = false;
};

// In these kernels the failing operation records the failure.

struct NodeMovementKernel {
  template <class Grid>
  void operator()(Grid& grid, const Context& ctx, PairChannel channel, const NodeMap* nodes, MovementPlan plan) const {
    if (grid.thread_rank() != 0) return;
    if (const OpenCall open(ctx, channel, plan.call); open)
      static_cast<void>(move_across({ctx, channel}, *nodes, plan));
  }
};

/// Returns `plan` with the counts and offsets in `values`.
MovementPlan varied(MovementPlan plan, const PieceValues<max_ranks>& values) {
  const auto& table = values.values;
  plan.table = {table[0], table[1], table[2], table[3]};
  return plan;
}

struct NodeVariedKernel {
  template <class Grid>
  void operator()(Grid& grid, const Context& ctx, PairChannel channel, const NodeMap* nodes, MovementPlan plan,
                  const PieceValues<max_ranks>& values) const {
    NodeMovementKernel{}(grid, ctx, channel, nodes, varied(plan, values));
  }
};

struct NodeReductionKernel {
  template <class Grid>
  void operator()(Grid& grid, const Context& ctx, PairChannel channel, const NodeMap* nodes,
                  NodeReduction reduction) const {
    if (grid.thread_rank() != 0) return;
    const OpenCall open(ctx, channel, reduction.call);
    if (!open) return;
    const PairLinks links(ctx, channel);
    static_cast<void>(is_short(links, reduction) ? reduce_short(links, *nodes, reduction)
                                                 : reduce_across(links, *nodes, reduction));
  }
};

/// An empty reduction, after this member's puts are complete: those of kernels and those of CPU threads.
struct NodeMeetingKernel {
  template <class Grid>
  void operator()(Grid& grid, const Context& ctx, PairChannel channel, const NodeMap* nodes, NodeReduction nothing,
                  const Context* of_threads) const {
    if (grid.thread_rank() != 0) return;
    for (const Context* const poster : {&ctx, of_threads})
      for (std::uint32_t queue = 0; queue < command_rings; ++queue)
        if (quiet(Thread{}, *poster, QueueId{queue}) != Status::ok) return;
    NodeReductionKernel{}(grid, ctx, channel, nodes, nothing);
  }
};

/// The ranges that a member reads and writes.
LaneVectors vectors_of(const Context& ctx, const MovementPlan& plan) {
  LaneVectors vectors{plan.destination, 0, plan.source, 0, plan.varies()};
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
    const Piece<const std::byte> sent = plan.outgoing(ctx, peer);
    const Piece<std::byte> got = plan.incoming(ctx, peer);
    if (sent.bytes != 0)
      vectors.source_bytes =
          std::max(vectors.source_bytes, static_cast<std::size_t>(sent.at - plan.source) + sent.bytes);
    if (got.bytes != 0)
      vectors.destination_bytes =
          std::max(vectors.destination_bytes, static_cast<std::size_t>(got.at - plan.destination) + got.bytes);
  }
  return vectors;
}

}  // namespace

Stream& AcrossNodes::stream_of(const LaunchOptions& options) const {
  return options.stream == nullptr ? team_.world().stream() : *options.stream;
}

AcrossNodes::AcrossNodes(Team& team, unsigned sessions)
    : team_(team), sessions_(sessions), nodes_(world_part<Membership>(team.world()).node_map(team.host_context())),
      shares_heaps_(!world_part<Membership>(team.world()).has_gpus()), memory_(team, sizes_for(team, sessions)),
      lane_(team.world().device().is_gpu() ? std::make_unique<CpuLane>(team) : nullptr) {}

template <class Kernel, class Placed>
void AcrossNodes::start(const LaunchOptions& options, Kernel kernel, const LaneVectors& vectors, Placed placed) {
  const auto launch_with = [&](const auto&... arguments) { launch(team_, options, kernel, arguments...); };
  if (lane_ == nullptr)
    return std::apply(launch_with, placed(static_cast<std::byte*>(vectors.destination),
                                          static_cast<const std::byte*>(vectors.source)));
  lane_->call(stream_of(options), vectors,
              [kernel, placed](const Context& ctx, std::byte* destination, const std::byte* source) {
                LoneThread alone;
                std::apply([&](const auto&... arguments) { kernel(alone, ctx, arguments...); },
                           placed(destination, source));
              });
}

void AcrossNodes::move(const LaunchOptions& options, const MovementPlan& plan) {
  start(options, NodeMovementKernel{}, vectors_of(team_.host_context(), plan),
        [channel = memory_.channel(), nodes = &nodes_, plan](std::byte* destination, const std::byte* source) {
          MovementPlan here = plan;
          here.destination = destination, here.source = source;
          return std::tuple(channel, nodes, here);
        });
}

void AcrossNodes::move(const LaunchOptions& options, const MovementPlan& plan, const PieceSpans& pieces) {
  const auto values = values_of<max_ranks>(pieces);
  start(options, NodeVariedKernel{}, vectors_of(team_.host_context(), varied(plan, values)),
        [channel = memory_.channel(), nodes = &nodes_, plan, values](std::byte* destination, const std::byte* source) {
          MovementPlan here = plan;
          here.destination = destination, here.source = source;
          return std::tuple(channel, nodes, here, values);
        });
}

void AcrossNodes::reduce(const LaunchOptions& options, const VectorCall& call) {
  const Context& ctx = team_.host_context();
  const std::size_t bytes = bytes_of(call.what);
  const bool gets_none = call.what.operation == Operation::reduce && call.what.root != ctx.rank;
  const std::size_t pieces = call.what.operation == Operation::reduce_scatter ? ctx.size : 1;
  start(options, NodeReductionKernel{}, {call.destination, gets_none ? 0 : bytes, call.source, pieces * bytes},
        [channel = memory_.channel(), nodes = &nodes_, what = call.what, shares = shares_heaps_](
            std::byte* destination, const std::byte* source) {
          return std::tuple(channel, nodes,
                            NodeReduction{what, what.reduction, destination, source, &wide_reducer(what.element.type),
                                          bytes_of(what.element.type), what.count, shares});
        });
}

void AcrossNodes::meet(const LaunchOptions& options, const CallDescription& call) {
  if (lane_ != nullptr) {  // the lane's thread waits for CPU threads' puts alone
    CpuLane::require_no_capture(stream_of(options));
    launch_quiet(team_, options);
  }
  start(options, NodeMeetingKernel{}, {},
        [channel = memory_.channel(), nodes = &nodes_, call, threads = &team_.host_context()](std::byte*,
                                                                                              const std::byte*) {
          return std::tuple(
              channel, nodes,
              NodeReduction{call, Reduction::sum, nullptr, nullptr, &wide_reducer(ElementType::uint8), 1, 0, false},
              threads);
        });
}

}  // namespace beeline::detail
