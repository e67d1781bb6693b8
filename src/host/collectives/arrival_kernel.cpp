// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/arrival_kernel.hpp"

#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/host/launch.hpp"
#include "beeline/selection/preferences.hpp"

namespace beeline::detail {

namespace {

/// Describes the kernel's wait. A wait that ends without success leaves no record.
struct Arrival {};

BEELINE_COLD BEELINE_HOST_DEVICE WaitState look(const Context& ctx, Arrival, Timeout timeout, std::uint64_t,
                                                std::uint64_t start_ns) {
  return state_of_wait(ctx, machine::clock_ns(), timeout, start_ns);
}

struct ArrivalKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel) const {
    SessionState* const mine = channel.states;
    const std::uint32_t number = next_call(mine), thread = grid.block().thread_rank();
    if (thread == 0) SystemAtomic<std::uint32_t>(mine->reached).store(number, std::memory_order_relaxed);
    for (std::uint32_t peer = thread; peer < ctx.size; peer += grid.block().size()) {
      if (peer == ctx.rank) continue;
      SessionState* const theirs = ctx.translate(mine, peer);
      static_cast<void>(poll_until(ctx, Arrival{}, Timeout{selection::arrival_limit_ns},
                                   [&](std::uint64_t&) { return has_come_to(theirs, number); }));
    }
  }
};

}  // namespace

void launch_arrival(const ChannelLaunch& on) { launch(on.team, on.options, ArrivalKernel{}, on.channel); }

}  // namespace beeline::detail
