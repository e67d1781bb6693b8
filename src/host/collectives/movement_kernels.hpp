// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts the kernels of collectives that move data, and of barriers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/core/registry.hpp"
#include "beeline/host/collectives.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

/// A table of pieces of up to `capacity` members by value: counts sent, offsets sent, counts received, offsets
/// received.
template <std::uint32_t capacity>
struct PieceValues {
  std::size_t values[4][capacity];
};

/// Launches the kernel of the algorithm in the plan's call.
void launch_movement(const ChannelLaunch& on, const MovementPlan& plan);
/// As `launch_movement`, for vectors mapped as in `mappings`, by the threads' loads and stores. `tables`: as below.
void launch_mapped_movement(const ChannelLaunch& on, const MovementPlan& plan, const VectorMappings& mappings,
                            std::size_t* tables);
/// As `launch_movement`, with the counts and offsets in `pieces`. `tables`: [sessions, 4, max_node_ranks] memory of a
/// host rank's kernel for them.
void launch_varied_movement(const ChannelLaunch& on, const MovementPlan& plan, const PieceSpans& pieces,
                            std::size_t* tables);
/// As above, with both mapped vectors and pieces. The team has at most `most_mapping_members` members.
void launch_mapped_varied_movement(const ChannelLaunch& on, const MovementPlan& plan, const PieceSpans& pieces,
                                   const VectorMappings& mappings, std::size_t* tables);

/// The table of a team of at most `capacity` members.
template <std::uint32_t capacity>
[[nodiscard]] PieceValues<capacity> values_of(const PieceSpans& pieces) {
  PieceValues<capacity> table{};
  const std::span<const std::size_t> columns[] = {pieces.send_counts, pieces.send_offsets, pieces.receive_counts,
                                                  pieces.receive_offsets};
  for (std::size_t column = 0; column < 4; ++column) std::ranges::copy(columns[column], table.values[column]);
  return table;
}

void launch_barrier(const ChannelLaunch& on, Algorithm algorithm);

}  // namespace beeline::detail
