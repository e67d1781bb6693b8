// SPDX-License-Identifier: Apache-2.0
// Collectives that move data share one kernel of bytes per algorithm, which a plan directs; another kernel serves
// pieces that differ in length.
#include "host/collectives/movement_kernels.hpp"

#include <algorithm>

#include "beeline/collectives/barrier.hpp"
#include "beeline/collectives/impl/movement.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

namespace {

/// The counter from which the grid's warps draw chunks; nullptr: each block has a slice.
[[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t* tickets_for(const Context& ctx, const CollectiveChannel& channel,
                                                             const MovementPlan& plan) {
  constexpr std::uint32_t warp = 32;
  const bool draws = executor == DeviceKind::gpu && plan.is_full() && ctx.size <= warp &&
                     plan.bytes >= selection::least_drawn_piece_bytes;
  return draws ? &channel.states[0].tickets : nullptr;
}

/// One kernel per algorithm, so that one algorithm's registers do not limit another's occupancy.
///   in_parts  broadcasts by ll128, which have code of their own
template <Algorithm algorithm, bool in_parts = false>
struct MovementKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr bool has_sound_copies = true;
  static constexpr std::size_t shared_bytes = algorithm == Algorithm::bulk ? sizeof(BulkBuffer) : 0;
  static constexpr bool starts_early = algorithm != Algorithm::bulk;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      MovementPlan plan) const {
    BulkBuffer* const buffer = algorithm == Algorithm::bulk ? bulk_buffer() : nullptr;
    if (algorithm == Algorithm::ll128 && (plan.call.operation == Operation::broadcast) != in_parts) return;
    plan.table = {};          // constant: no code for pieces that vary
    plan.mappings = nullptr;  // and none for mapped vectors
    plan.tickets = algorithm == Algorithm::peer ? tickets_for(ctx, channel, plan) : nullptr;
    const MovementPlan mine = plan.slice(grid.block_rank(), grid.blocks());
    Session session(grid.block(), ctx, channel, grid.block_rank(), SessionStart::of_kernel);
    // The failing operation records the failure.
    static_cast<void>(move(session, mine, {.algorithm = algorithm, .buffer = buffer}));
  }
};

/// Moves vectors that the members have mapped, by the threads' loads and stores. `full`: every member sends to every
/// member.
template <bool full>
struct MappedMovementKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr bool has_sound_copies = true;
  static constexpr std::size_t shared_bytes = sizeof(MappingTable);
  static constexpr bool starts_early = true;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, MovementPlan plan,
                                      VectorMappings mappings, std::size_t* tables) const {
    plan.table = {};
    if (full) plan.sender = plan.receiver = no_peer;
    plan.mappings = &mapping_table(grid, mappings, tables).mine;
    plan.tickets = tickets_for(ctx, channel, plan);
    Session session(grid.block(), ctx, channel, grid.block_rank(), SessionStart::of_kernel);
    static_cast<void>(move(session, plan.slice(grid.block_rank(), grid.blocks()), {.algorithm = Algorithm::peer}));
  }
};

/// Members up to which the table of an all-to-all-v is short: a kernel with more arguments takes longer to start.
constexpr std::uint32_t few_members = 8;

/// Copies the table of pieces to memory in which a block's threads index quickly; indexing kernel arguments is slow.
///   table  memory of the block, [4, capacity]
template <std::uint32_t capacity, class Grid>
[[nodiscard]] BEELINE_HOST_DEVICE PieceTable piece_table(const Grid& grid, const Context& ctx,
                                                         const PieceValues<capacity>& values, std::size_t* table) {
  for (std::uint32_t i = grid.block().thread_rank(); i < 4 * capacity; i += grid.block().size())
    if (i % capacity < ctx.size) table[i] = values.values[i / capacity][i % capacity];
  grid.block().sync();
  return {table, table + capacity, table + 2 * capacity, table + 3 * capacity};
}

template <Algorithm algorithm, std::uint32_t capacity>
struct VariedMovementKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr bool has_sound_copies = true;
  static constexpr bool bulk = algorithm == Algorithm::bulk;
  static constexpr std::size_t buffer_bytes = bulk ? sizeof(BulkBuffer) : 0;
  static constexpr std::size_t shared_bytes = buffer_bytes + sizeof(PieceValues<capacity>);
  static constexpr bool starts_early = !bulk;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, MovementPlan plan,
                                      PieceValues<capacity> values, std::size_t* tables) const {
    std::size_t* const table = executor == DeviceKind::gpu
                                   ? reinterpret_cast<std::size_t*>(machine::dynamic_shared_memory() + buffer_bytes)
                                   : tables + std::size_t{grid.block_rank()} * 4 * max_node_ranks;
    plan.table = piece_table(grid, ctx, values, table);
    plan.mappings = nullptr;
    const SessionCall how{.algorithm = algorithm, .buffer = bulk ? bulk_buffer() : nullptr};
    Session session(grid.block(), ctx, channel, grid.block_rank(), SessionStart::of_kernel);
    static_cast<void>(move(session, plan.slice(grid.block_rank(), grid.blocks()), how));
  }
};

/// Moves pieces that differ, in vectors that the members have mapped, by the threads' stores.
struct MappedVariedMovementKernel {
  using Values = PieceValues<most_mapping_members>;
  static constexpr unsigned max_threads = collective_threads;
  static constexpr bool has_sound_copies = true;
  static constexpr std::size_t shared_bytes = sizeof(MappingTable) + sizeof(Values);
  static_assert(shared_bytes <= 4 * max_node_ranks * sizeof(std::size_t));
  static constexpr bool starts_early = true;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, MovementPlan plan,
                                      Values values, VectorMappings mappings, std::size_t* tables) const {
    MappingTable& table = mapping_table(grid, mappings, tables);
    plan.table = piece_table(grid, ctx, values, reinterpret_cast<std::size_t*>(&table + 1));
    plan.mappings = &table.mine;
    Session session(grid.block(), ctx, channel, grid.block_rank(), SessionStart::of_kernel);
    static_cast<void>(move(session, plan.slice(grid.block_rank(), grid.blocks()), {.algorithm = Algorithm::peer}));
  }
};

struct BarrierKernel {
  static constexpr unsigned max_threads = collective_threads;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      Algorithm algorithm) const {
    Session session(grid.block(), ctx, channel, grid.block_rank());
    if (algorithm == Algorithm::hierarchical)
      static_cast<void>(barrier(grid, session, algorithm));
    else
      static_cast<void>(barrier(session, {.algorithm = algorithm}));
  }
};

}  // namespace

void launch_movement(const ChannelLaunch& on, const MovementPlan& plan) {
  if (plan.call.algorithm == Algorithm::ll128 && plan.call.operation == Operation::broadcast)
    return launch(on.team, on.options, MovementKernel<Algorithm::ll128, true>{}, on.channel, plan);
  with_member<algorithms_of(Operation::allgather, Control::device)>(plan.call.algorithm, [&]<Algorithm known>() {
    launch(on.team, on.options, MovementKernel<known>{}, on.channel, plan);
  });
}

void launch_mapped_movement(const ChannelLaunch& on, const MovementPlan& plan, const VectorMappings& mappings,
                            std::size_t* tables) {
  const auto start = [&](const auto& kernel) {
    launch(on.team, on.options, kernel, on.channel, plan, mappings, tables);
  };
  plan.is_full() ? start(MappedMovementKernel<true>{}) : start(MappedMovementKernel<false>{});
}

void launch_mapped_varied_movement(const ChannelLaunch& on, const MovementPlan& plan, const PieceSpans& pieces,
                                   const VectorMappings& mappings, std::size_t* tables) {
  launch(on.team, on.options, MappedVariedMovementKernel{}, on.channel, plan, values_of<most_mapping_members>(pieces),
         mappings, tables);
}

void launch_varied_movement(const ChannelLaunch& on, const MovementPlan& plan, const PieceSpans& pieces,
                            std::size_t* tables) {
  const auto start = [&]<Algorithm known>() {
    if (on.team.context().size <= few_members)
      launch(on.team, on.options, VariedMovementKernel<known, few_members>{}, on.channel, plan,
             values_of<few_members>(pieces), tables);
    else
      launch(on.team, on.options, VariedMovementKernel<known, max_node_ranks>{}, on.channel, plan,
             values_of<max_node_ranks>(pieces), tables);
  };
  with_member<algorithms_of(Operation::alltoallv, Control::device)>(plan.call.algorithm, start);
}

void launch_barrier(const ChannelLaunch& on, Algorithm algorithm) {
  launch(on.team, on.options, BarrierKernel{}, on.channel, algorithm);
}

}  // namespace beeline::detail
