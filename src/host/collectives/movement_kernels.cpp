// SPDX-License-Identifier: Apache-2.0
// All that moves data is a kernel of bytes for each algorithm, which a plan tells what to do, and another where pieces
// differ.
#include "host/collectives/movement_kernels.hpp"

#include "beeline/collectives/barrier.hpp"
#include "beeline/collectives/exchange.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

namespace {

/// An algorithm a kernel: registers are few, and what one needs the others would pay for.
template <Algorithm algorithm>
struct MovementKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr std::size_t shared_bytes = algorithm == Algorithm::bulk ? sizeof(BulkBuffer) : 0;
  static constexpr bool starts_early = algorithm != Algorithm::bulk;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      ExchangePlan plan) const {
    BulkBuffer* const buffer = algorithm == Algorithm::bulk ? bulk_buffer() : nullptr;
    const ExchangePlan mine = plan.slice(grid.block_rank(), grid.blocks());
    Lane lane(grid.block(), ctx, channel, grid.block_rank(), LaneStart::of_kernel);
    // What fails is recorded where it fails.
    static_cast<void>(exchange(lane, mine, {.algorithm = algorithm, .buffer = buffer}));
  }
};

template <bool bulk>
struct VariedMovementKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr std::size_t shared_bytes = bulk ? sizeof(BulkBuffer) : 0;
  static constexpr bool starts_early = !bulk;

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
  switch (algorithm) {
    case Algorithm::packets:
      return launch(world, options, MovementKernel<Algorithm::packets>{}, channel, plan);
    case Algorithm::packets128:
      return launch(world, options, MovementKernel<Algorithm::packets128>{}, channel, plan);
    case Algorithm::bulk:
      return launch(world, options, MovementKernel<Algorithm::bulk>{}, channel, plan);
    default:
      return launch(world, options, MovementKernel<Algorithm::peer>{}, channel, plan);
  }
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
