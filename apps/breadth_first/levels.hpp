// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The exchange of numbers between ranks after a level, for the methods whose kernel searches all levels.

#include "beeline/device/barrier.hpp"
#include "beeline/device/put_get.hpp"
#include "queues.hpp"

namespace breadth_first {

/// Numbers that this rank puts to all ranks.
struct Numbers {
  std::uint32_t* first;
  std::uint32_t stride;  ///< 1: each rank gets a number of its own, first[rank]; 0: all get the same
};

/// Puts a number to each rank, and waits for the numbers of all ranks. Their earlier puts have then arrived, too. Every
/// thread of the grid calls it, at the end of `level`. Returns false if a wait failed.
///   table  [2, ranks] symmetric: numbers of each rank; levels alternate
template <class Grid>
[[nodiscard]] BEELINE_HOST_DEVICE bool publish(Grid& grid, const beeline::Context& ctx, std::uint32_t level,
                                               std::uint32_t* table, const Numbers& numbers) {
  if (grid.sync(ctx) != beeline::Status::ok) return false;
  if (grid.block_rank() == 0) {
    const auto& block = grid.block();
    std::uint32_t* const to = table + level % 2 * ctx.size;
    bool failed = false;
    for (std::uint32_t rank = block.thread_rank(); rank < ctx.size; rank += block.size()) {
      const std::uint32_t number = DeviceWord(numbers.first[rank * numbers.stride]).load(std::memory_order_relaxed);
      failed |= beeline::put_value(ctx, to + ctx.rank, number, rank) != beeline::Status::ok;
    }
    if (block.any(failed) || beeline::barrier(block, ctx) != beeline::Status::ok) return false;
  }
  return grid.sync(ctx) == beeline::Status::ok;
}

/// Ends a level: publishes how many vertices this rank has for the next one, and empties the queue of this level. Every
/// thread of the grid calls it. Returns false if a wait failed.
///   lengths  [2, ranks] symmetric: of the next queues of all ranks
///   goes_on  set to whether any rank has vertices for the next level
template <class Grid>
[[nodiscard]] BEELINE_HOST_DEVICE bool end_level(Grid& grid, const beeline::Context& ctx, const Queues& queues,
                                                 std::uint32_t level, std::uint32_t* lengths, bool& goes_on) {
  if (!publish(grid, ctx, level, lengths, {queues.lengths + (level + 1) % 3, 0})) return false;
  goes_on = false;
  for (std::uint32_t rank = 0; rank < ctx.size; ++rank)
    goes_on |= beeline::load_value(lengths + level % 2 * ctx.size + rank) != 0;
  if (grid.thread_rank() == 0) queues.lengths[level % 3] = 0;
  return true;
}

}  // namespace breadth_first
