// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts the kernels of collectives that move data, and of barriers.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/core/registry.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/team.hpp"

namespace beeline::detail {

/// A table of pieces of up to `capacity` members by value: counts sent, offsets sent, counts received, offsets
/// received.
template <std::uint32_t capacity>
struct PieceValues {
  std::size_t values[4][capacity];
};

/// By an algorithm that kernels have, as the plan's call says.
void launch_movement(Team& team, const LaunchOptions& options, const CollectiveChannel& channel,
                     const MovementPlan& plan);
/// Of vectors that lie as `mappings` says, by the threads' loads and stores. `tables`: as below.
void launch_mapped_movement(Team& team, const LaunchOptions& options, const CollectiveChannel& channel,
                            const MovementPlan& plan, const VectorMappings& mappings, std::size_t* tables);
/// With pieces as `values` says. `tables`: [sessions, 4, max_ranks], where the kernel keeps them on a host rank.
void launch_varied_movement(Team& team, const LaunchOptions& options, const CollectiveChannel& channel,
                            const MovementPlan& plan, const PieceValues<max_ranks>& values, std::size_t* tables);
/// Both. The members are at most `most_mapping_members`.
void launch_mapped_varied_movement(Team& team, const LaunchOptions& options, const CollectiveChannel& channel,
                                   const MovementPlan& plan, const PieceValues<most_mapping_members>& values,
                                   const VectorMappings& mappings, std::size_t* tables);

/// The table of the first `capacity` members.
template <std::uint32_t capacity>
[[nodiscard]] PieceValues<capacity> shortened(const PieceValues<max_ranks>& all) {
  PieceValues<capacity> some;
  for (std::size_t column = 0; column < 4; ++column) std::copy_n(all.values[column], capacity, some.values[column]);
  return some;
}

void launch_barrier(Team& team, const LaunchOptions& options, const CollectiveChannel& channel, Algorithm algorithm);

}  // namespace beeline::detail
