// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Iterations of a computation and an exchange with the peer, whose kernels are launched by the CPU or by a kernel.
/// Those launched by a kernel are in a library of their own, because they need relocatable device code.

#include <cstdint>

#include "beeline/device/grid.hpp"
#include "beeline/device/impl/atomic_word.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/device/wait.hpp"
#include "beeline/host/world.hpp"
#include "harness/random.hpp"

namespace beeline::bench {

struct Exchange {
  std::uint64_t *destination, *source;  ///< [words], symmetric
  std::uint64_t words, seed;
  std::uint64_t* arrived;   ///< symmetric: number of the last iteration whose message has arrived
  std::uint32_t* computed;  ///< blocks that have computed their part of an iteration
  std::uint32_t peer;

  /// Word `i` of the message that `rank` computes in an iteration.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t word(std::uint64_t iteration, std::uint64_t rank,
                                                       std::uint64_t i) const {
    return random_word(seed + iteration, 2 * i + rank);
  }

  /// The grid computes the message.
  template <class Grid>
  BEELINE_HOST_DEVICE void compute(const Grid& grid, const Context& ctx, std::uint64_t iteration) const {
    for (std::uint64_t i = grid.thread_rank(); i < words; i += grid.size()) source[i] = word(iteration, ctx.rank, i);
  }
  /// One block sends the message, and waits for the peer's.
  template <class Group>
  BEELINE_HOST_DEVICE bool communicate(const Group& block, const Context& ctx, std::uint64_t iteration) const {
    return put_signal(block, ctx, destination, source, words, arrived, iteration, peer) == Status::ok &&
           wait(block, ctx, arrived, Compare::greater_equal, iteration, peer) == Status::ok;
  }
  /// Whether this block is the last block of the grid to finish computing; every thread gets the same result.
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_last(const Grid& grid) const {
    grid.block().sync();
    bool last = false;
    if (grid.block().thread_rank() == 0) {
      const machine::DeviceAtomic<std::uint32_t> count(*computed);
      last = count.fetch_add(1, std::memory_order_acq_rel) + 1 == grid.blocks();
      if (last) count.store(0, std::memory_order_relaxed);
    }
    return grid.block().any(last);
  }
};

/// What separates the exchange from the computation.
enum class Separation { kernels, last_block, grid_barrier };

inline constexpr unsigned exchange_threads = 256;

/// Most iterations of a launch: the device runtime holds 2,048 kernels that have not begun.
inline constexpr std::uint32_t most_launched_iterations = 500;

/// Enqueues a kernel that launches the kernels of iterations [first, first + count), each with `blocks` blocks. With
/// `Separation::kernels` each is followed by a kernel of one block that communicates. Throws unavailable on host ranks
/// and without CUDA.
///   error  host memory that the kernel reaches; gets the error of the device runtime, 0 if none
void launch_from_kernel(World& world, const Exchange& exchange, Separation separation, unsigned blocks,
                        std::uint64_t first, std::uint32_t count, int* error);

}  // namespace beeline::bench
