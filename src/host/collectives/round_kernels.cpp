// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/round_kernels.hpp"

#include "beeline/collectives/impl/call_check.hpp"
#include "beeline/collectives/impl/schedule/two_shot.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

namespace {

struct HandshakeKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, CallDescription call,
                                      const std::byte* destination, const std::byte* source) const {
    Session session(grid.block(), ctx, channel);
    if (call.count == 0) return static_cast<void>(empty_call(session, call, Timeout::none()));
    if (session.begin(call) != Status::ok) return;
    bool symmetric = false;
    if (compare_places(session, destination, source, Timeout::none(), symmetric) != Status::ok || symmetric) return;
    if (destination == nullptr) return;  // vectors need not be symmetric
    if (grid.block().thread_rank() == 0)
      refuse_call(ctx, {CallDifference::places, ctx.rank, {.packed = call.packed(), .count = call.count}, {}});
  }
};

struct RoundKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel) const {
    Session session(grid.block(), ctx, channel);
    static_cast<void>(session.barrier(Order::memory, Timeout::none()));
  }
};

struct TakeKernel {
  static constexpr unsigned max_threads = collective_threads;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, EngineResults results) const {
    if (has_failed(grid.block(), ctx)) return;
    const EngineChunk& chunk = results.chunk;
    for (std::uint32_t distance = 1; distance < ctx.size; ++distance) {
      const std::uint32_t owner = peer_ahead(ctx, distance);
      const EnginePiece piece = piece_of(chunk, results.count, results.element_bytes, ctx.size, owner);
      const std::byte* const from =
          results.scratch + chunk.result_place + number_beside(ctx.rank, owner) * chunk.stride;
      const Range mine = part_of(piece.bytes, grid.blocks(), grid.block_rank(), engine_alignment);
      copy_bytes(grid.block(), results.destination + piece.offset + mine.first, from + mine.first, mine.count);
    }
  }
};

struct QuietKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx) const {
    for (std::uint32_t queue = 0; queue < command_rings; ++queue)
      if (quiet(grid.block(), ctx, QueueId{queue}) != Status::ok) return;
  }
};

}  // namespace

void launch_quiet(Team& team, const LaunchOptions& options) { launch(team, options, QuietKernel{}); }

void launch_handshake(const ChannelLaunch& on, const CallDescription& call, const void* destination,
                      const void* source) {
  launch(on.team, on.options, HandshakeKernel{}, on.channel, call, static_cast<const std::byte*>(destination),
         static_cast<const std::byte*>(source));
}

void launch_round(const ChannelLaunch& on) { launch(on.team, on.options, RoundKernel{}, on.channel); }

void launch_take(Team& team, const LaunchOptions& options, const EngineResults& results) {
  launch(team, options, TakeKernel{}, results);
}

}  // namespace beeline::detail
