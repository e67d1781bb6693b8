// SPDX-License-Identifier: Apache-2.0
// All that moves data is one kernel of bytes, which a plan tells what to do. In bulk it needs shared memory, so that is
// another one; so is the one whose pieces differ.
#include "host/collectives/movement_kernels.hpp"

#include "beeline/collectives/barrier.hpp"
#include "beeline/collectives/exchange.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

namespace {

template <bool bulk>
struct MovementKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr std::size_t shared_bytes = bulk ? sizeof(BulkBuffer) : 0;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, ExchangePlan plan,
                                      Algorithm algorithm) const {
    const LaneCall how{.algorithm = bulk ? Algorithm::bulk : algorithm, .buffer = bulk ? bulk_buffer() : nullptr};
    // What fails is recorded where it fails.
    static_cast<void>(exchange_by_grid(grid, ctx, channel, plan, how));
  }
};

template <bool bulk>
struct VariedMovementKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr std::size_t shared_bytes = bulk ? sizeof(BulkBuffer) : 0;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, ExchangePlan plan,
                                      Algorithm algorithm, PieceValues values, std::size_t* tables) const {
    std::size_t* const table = tables + std::size_t{grid.block_rank()} * 4 * max_ranks;
    for (std::uint32_t i = grid.block().thread_rank(); i < 4 * max_ranks; i += grid.block().size())
      table[i] = values.values[i];
    grid.block().sync();
    plan.table = {table, table + max_ranks, table + 2 * max_ranks, table + 3 * max_ranks};
    const LaneCall how{.algorithm = bulk ? Algorithm::bulk : algorithm, .buffer = bulk ? bulk_buffer() : nullptr};
    static_cast<void>(exchange_by_grid(grid, ctx, channel, plan, how));
  }
};

struct BarrierKernel {
  static constexpr unsigned max_threads = collective_threads;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      BarrierAlgorithm algorithm) const {
    if (algorithm == BarrierAlgorithm::hierarchical)
      static_cast<void>(barrier(grid, ctx, channel, algorithm));
    else
      static_cast<void>(barrier(grid.block(), ctx, channel, algorithm));
  }
};

}  // namespace

void launch_movement(World& world, const LaunchOptions& options, const CollectiveChannel& channel,
                     const ExchangePlan& plan, Algorithm algorithm) {
  if (algorithm == Algorithm::bulk)
    launch(world, options, MovementKernel<true>{}, channel, plan, algorithm);
  else
    launch(world, options, MovementKernel<false>{}, channel, plan, algorithm);
}

void launch_varied_movement(World& world, const LaunchOptions& options, const CollectiveChannel& channel,
                            const ExchangePlan& plan, Algorithm algorithm, const PieceValues& values,
                            std::size_t* tables) {
  if (algorithm == Algorithm::bulk)
    launch(world, options, VariedMovementKernel<true>{}, channel, plan, algorithm, values, tables);
  else
    launch(world, options, VariedMovementKernel<false>{}, channel, plan, algorithm, values, tables);
}

void launch_barrier(World& world, const LaunchOptions& options, const CollectiveChannel& channel,
                    BarrierAlgorithm algorithm) {
  launch(world, options, BarrierKernel{}, channel, algorithm);
}

}  // namespace beeline::detail
