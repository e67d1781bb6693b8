// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The local reduction, inside a kernel: over a thread's share, over a block, over the blocks.

#include <cstddef>
#include <cstdint>

#include "beeline/device/impl/machine.hpp"
#include "common/block_total.hpp"
#include "common/last_block.hpp"

namespace global_reduction {

/// Threads of a block of every launch on a GPU.
inline constexpr unsigned block_threads = apps::max_block_threads;
inline constexpr unsigned max_blocks = 1024;

/// The data of the local reduction, in this rank's memory.
struct Input {
  const float* values;
  std::size_t count;
  double* block_sums;       ///< [max_blocks]
  double* scratch;          ///< [threads of the grid] on host ranks
  std::uint32_t* finished;  ///< blocks that have stored their sums; zero between launches
};

namespace detail {

/// Four values, loaded at once.
struct alignas(16) Four {
  float values[4];
};

BEELINE_HOST_DEVICE inline double sum_of(const Four& four) {
  return (static_cast<double>(four.values[0]) + static_cast<double>(four.values[1])) +
         (static_cast<double>(four.values[2]) + static_cast<double>(four.values[3]));
}

/// The sum of thread `thread`'s share. Accumulates four sums independently, so that loads and additions overlap.
BEELINE_HOST_DEVICE inline double sum_of_share(const Input& input, std::size_t thread, std::size_t threads) {
  constexpr unsigned many = 4;
  const std::size_t fours = input.count / 4;
  const auto* values = reinterpret_cast<const std::byte*>(input.values);
  double sums[many] = {};
#if BEELINE_ON_GPU
  const std::size_t first = thread, last = fours, stride = threads;
#else
  // A CPU thread walks through one contiguous share.
  const std::size_t share = (fours + threads - 1) / threads, stride = 1;
  const std::size_t first = share * thread < fours ? share * thread : fours;
  const std::size_t last = first + share < fours ? first + share : fours;
#endif
  std::size_t i = first;
  BEELINE_NO_UNROLL
  for (; i + (many - 1) * stride < last; i += many * stride) {
    Four fetched[many];
    for (unsigned k = 0; k < many; ++k)
      fetched[k] = beeline::machine::load_as<Four>(values + (i + k * stride) * sizeof(Four));
    for (unsigned k = 0; k < many; ++k) sums[k] += sum_of(fetched[k]);
  }
  BEELINE_NO_UNROLL
  for (; i < last; i += stride) sums[0] += sum_of(beeline::machine::load_as<Four>(values + i * sizeof(Four)));
  BEELINE_NO_UNROLL
  for (i = 4 * fours + thread; i < input.count; i += threads) sums[1] += static_cast<double>(input.values[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class Grid>
[[nodiscard]] BEELINE_HOST_DEVICE double* scratch_of(const Grid& grid, const Input& input) {
  return input.scratch + grid.block_rank() * grid.block().size();
}

}  // namespace detail

/// Stores the sum of the block's share in `input.block_sums`. Every thread of the grid calls it.
template <class Grid>
BEELINE_HOST_DEVICE void store_block_sum(const Grid& grid, const Input& input) {
  const double mine = detail::sum_of_share(input, grid.thread_rank(), grid.size());
  const double sum = apps::block_total(grid.block(), detail::scratch_of(grid, input), mine);
  if (grid.block().thread_rank() == 0) input.block_sums[grid.block_rank()] = sum;
}

/// Adds up the sums that all blocks of the grid have stored; valid on thread 0. Every thread of one block calls it,
/// after a synchronisation that makes all blocks' sums visible to the block.
template <class Grid>
[[nodiscard]] BEELINE_HOST_DEVICE double total_of_blocks(const Grid& grid, const Input& input) {
  double mine = 0;
  for (unsigned i = grid.block().thread_rank(); i < grid.blocks(); i += grid.block().size())
    mine += input.block_sums[i];
  return apps::block_total(grid.block(), detail::scratch_of(grid, input), mine);
}

/// Computes the local sum in the last block, which a counter finds. There it stores the sum in `*local`, visible to the
/// block, and returns true; in the other blocks it returns false. Every thread of the grid calls it.
template <class Grid>
[[nodiscard]] BEELINE_HOST_DEVICE bool sum_in_last_block(const Grid& grid, const Input& input, double* local) {
  store_block_sum(grid, input);
  if (!apps::is_last(grid.block(), input.finished, grid.blocks())) return false;
  const double total = total_of_blocks(grid, input);
  if (grid.block().thread_rank() == 0) *local = total;
  grid.block().sync();
  return true;
}

}  // namespace global_reduction
