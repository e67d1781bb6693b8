// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kernels of reducing collectives for one element type. All-reduces by quick algorithms have one kernel per
/// algorithm for sums, and one for all other reductions. One kernel serves all other algorithms.

#include "beeline/collectives/allreduce.hpp"
#include "beeline/collectives/impl/schedule/mapped.hpp"
#include "beeline/host/launch.hpp"
#include "host/collectives/engine_chunk.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

/// The quick algorithms of all-reduces, which have kernels of their own.
inline constexpr Algorithms quick_allreduces = allreduces_in_packets | set_of({Algorithm::two_shot});

/// The counter from which the warps of a two-shot all-reduce draw their next pieces; nullptr: warps take pieces in
/// turn.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t* tickets_for(const CollectiveChannel& channel, std::size_t count) {
  const bool draws = executor == DeviceKind::gpu && count * sizeof(T) >= selection::least_drawn_bytes;
  return draws ? &channel.states[0].tickets : nullptr;
}

/// Whether members push parts to their owners through the channel's memory; otherwise the owners fetch them.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE bool pushes(const Context& ctx, const CollectiveChannel& channel, std::size_t count) {
  return executor == DeviceKind::gpu && selection::pushes(ctx.size, count * sizeof(T)) &&
         channel.staging_bytes >= selection::least_pushing_staging;
}

template <class T, Algorithm algorithm, std::uint32_t members = 0, class Grid>
BEELINE_INLINE BEELINE_HOST_DEVICE void allreduce_by_kernel(const Grid& grid, const Context& ctx,
                                                            const CollectiveChannel& channel,
                                                            const AllreduceCall<T>& vectors) {
  AllreduceCall<T> call = vectors;
  call.tickets = algorithm == Algorithm::two_shot ? tickets_for<T>(channel, call.count) : nullptr;
  call.pushes = algorithm == Algorithm::two_shot && pushes<T>(ctx, channel, call.count);
  call.slice = grid.block_rank(), call.call.slices = grid.blocks();
  if constexpr (info_of(algorithm).protocol == Protocol::ll) {
    // This load overlaps with the load of the session's state.
    const auto own = call.own();
    const std::size_t first = grid.block().thread_rank() * (8 / sizeof(T));
    if (first < own.count) machine::prefetch(own.source + first);
  }
  Session session(grid.block(), ctx, channel, grid.block_rank(), SessionStart::of_kernel);
  // The failing operation records the failure.
  static_cast<void>(run_allreduce<algorithm, members>(session, call, {.algorithm = algorithm}));
}

/// Sums and averages on GPUs. A kernel with more reductions would have longer code, which is fetched at each start.
/// `members`: size of the team, if LL128 has code of its own for it; 0: any size.
template <class T, Algorithm algorithm, std::uint32_t members = 0>
struct AddingKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr bool starts_early = true;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      AllreduceCall<T> call) const {
    call.call.reduction = call.call.reduction == Reduction::average ? Reduction::average : Reduction::sum;
    if constexpr (executor == DeviceKind::gpu) allreduce_by_kernel<T, algorithm, members>(grid, ctx, channel, call);
  }
};

/// All reductions on host ranks; on GPUs the reductions without an `AddingKernel`.
template <class T>
struct AllreduceKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr bool starts_early = true;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, AllreduceCall<T> call,
                                      Algorithm algorithm) const {
    if (executor == DeviceKind::gpu && !shares_kernels<T> && adds(call.call.reduction))
      return;  // an AddingKernel exists: not compiled twice
    with_member<quick_allreduces>(algorithm,
                                  [&]<Algorithm known>() { allreduce_by_kernel<T, known>(grid, ctx, channel, call); });
  }
};

template <class T, Algorithm algorithm>
void launch_allreduce(const ChannelLaunch& on, const VectorCall& call) {
  const AllreduceCall<T> vectors{call.what, static_cast<T*>(call.destination), static_cast<const T*>(call.source),
                                 call.what.count};
  if (shares_kernels<T> || !on.team.world().device().is_gpu() || !adds(call.what.reduction))
    return launch(on.team, on.options, AllreduceKernel<T>{}, on.channel, vectors, algorithm);
  if constexpr (!shares_kernels<T>) {
    if constexpr (is_ll128(algorithm)) {
      if (on.team.size() == 2) return launch(on.team, on.options, AddingKernel<T, algorithm, 2>{}, on.channel, vectors);
      if (on.team.size() == 4) return launch(on.team, on.options, AddingKernel<T, algorithm, 4>{}, on.channel, vectors);
    }
    launch(on.team, on.options, AddingKernel<T, algorithm>{}, on.channel, vectors);
  }
}

/// Algorithms of the other reducing collectives with kernels of their own: those that `automatic` chooses, and those
/// that need shared memory.
inline constexpr Algorithms own_reductions =
    (selection::chosen_on_streams(selection::reductions_to_some) & ~set_of({Algorithm::across_nodes})) |
    algorithms_where(~Algorithms{0}, [](const AlgorithmInfo& info) { return info.path == Path::bulk; });

/// Reductions by one algorithm, or (automatic) by any algorithm without a kernel of its own.
template <class T, Algorithm known>
struct NamedReductionKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr bool bulk = known == Algorithm::bulk;
  static constexpr std::size_t shared_bytes = bulk ? sizeof(BulkBuffer) : 0;
  static constexpr bool starts_early = true;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      ReductionPlan<T> plan) const {
    const Algorithm algorithm = known == Algorithm::automatic ? plan.call.algorithm : known;
    if (known == Algorithm::automatic && contains(own_reductions, algorithm)) return;  // not compiled twice
    Session session(grid.block(), ctx, channel, grid.block_rank(), SessionStart::of_kernel);
    const SessionCall how{.algorithm = algorithm, .buffer = bulk ? bulk_buffer() : nullptr};
    // The failing operation records the failure.
    static_cast<void>(reduce_by(session, plan.slice(grid.block_rank(), grid.blocks()), how));
  }
};

template <class T>
void launch_named_reduction(const ChannelLaunch& on, const VectorCall& call) {
  const ReductionPlan<T> plan{call.what, static_cast<T*>(call.destination), static_cast<const T*>(call.source),
                              call.what.count, call.what.count};
  const auto start = [&]<Algorithm known>() {
    launch(on.team, on.options, NamedReductionKernel<T, known>{}, on.channel, plan);
  };
  if (!contains(own_reductions, call.what.algorithm)) return start.template operator()<Algorithm::automatic>();
  with_member<own_reductions>(call.what.algorithm, start);
}

/// An all-reduce, or another reducing collective, of vectors that the members have mapped; any reduction.
template <class T, bool reduces_all>
struct MappedReductionKernel {
  static constexpr unsigned max_threads = collective_threads;
  static constexpr bool has_sound_copies = true;
  static constexpr std::size_t shared_bytes = sizeof(MappingTable);
  static constexpr bool starts_early = true;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, ReductionPlan<T> plan,
                                      VectorMappings mappings, std::size_t* tables) const {
    MappingTable& table = mapping_table(grid, mappings, tables);
    Session session(grid.block(), ctx, channel, grid.block_rank(), SessionStart::of_kernel);
    // The failing operation records the failure.
    if constexpr (!reduces_all) {
      static_cast<void>(reduce_mapped(session, plan.slice(grid.block_rank(), grid.blocks()), table, Timeout::none()));
    } else {
      AllreduceCall<T> call{plan.call,
                            plan.destination,
                            plan.source,
                            plan.count,
                            grid.block_rank(),
                            tickets_for<T>(channel, plan.count),
                            pushes<T>(ctx, channel, plan.count)};
      call.call.slices = grid.blocks();
      static_cast<void>(allreduce_mapped(session, call, table, Timeout::none()));
    }
  }
};

template <class T>
void launch_reduction_of(const ChannelLaunch& on, const VectorCall& call) {
  if (call.mappings != nullptr) {
    const ReductionPlan<T> plan{call.what, static_cast<T*>(call.destination), static_cast<const T*>(call.source),
                                call.what.count, call.what.count};
    const auto start = [&](const auto& kernel) {
      launch(on.team, on.options, kernel, on.channel, plan, *call.mappings, call.tables);
    };
    if (call.what.operation == Operation::allreduce) return start(MappedReductionKernel<T, true>{});
    return start(MappedReductionKernel<T, false>{});
  }
  if (call.what.operation != Operation::allreduce || !contains(quick_allreduces, call.what.algorithm))
    return launch_named_reduction<T>(on, call);
  with_member<quick_allreduces>(call.what.algorithm, [&]<Algorithm known>() { launch_allreduce<T, known>(on, call); });
}

template <class T>
struct LocalReduceKernel {
  static constexpr unsigned max_threads = collective_threads;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, FetchedVectors vectors, T* destination,
                                      std::size_t count, Reduction reduction) const {
    if (has_failed(grid.block(), ctx)) return;
    // The grid has few blocks, beside copies whose bandwidth it shares, so each thread keeps several loads in flight.
    combine_into<T, 4>({grid.thread_rank(), grid.size()}, vectors, destination, count, reduction);
  }
};

template <class T>
ReductionLaunchers reduction_launchers_of() {
  return {launch_reduction_of<T>, [](Team& team, const LaunchOptions& options, const LocalReduction& work) {
            launch(team, options, LocalReduceKernel<T>{}, work.vectors, static_cast<T*>(work.destination), work.count,
                   work.reduction);
          }};
}

}  // namespace beeline::detail
