// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a triggered operation moves when a kernel does it behind the stream's wait: unless the wait was released only
/// so that the stream drains.

#include <cstddef>
#include <cstdint>

#include "beeline/device/put_get.hpp"

namespace beeline {

/// Bytes to copy, or a signal to set, as addresses of this process.
struct StreamMove {
  void* to = nullptr;  ///< nullptr: `signal` is set
  const void* from = nullptr;
  std::size_t bytes = 0;
  std::uint64_t* signal = nullptr;
  std::uint64_t value = 0;
};

/// The kernel. The guard: `released`, in host memory, which is set before waits are released.
struct GuardedMove {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, StreamMove first, StreamMove second,
                                      const std::uint64_t* released) const {
    if (detail::load_acquired(*released) != 0) return;
    move(grid, first);
    grid.block().sync();
    move(grid, second);
  }

 private:
  template <class Grid>
  BEELINE_HOST_DEVICE static void move(const Grid& grid, const StreamMove& what) {
    const auto& block = grid.block();
    if (what.signal != nullptr) {
      if (block.thread_rank() == 0) detail::store_signal(what.signal, what.value, Order::memory);
      return;
    }
    if (what.to == nullptr) return;
    // Whole pages for each block.
    constexpr std::size_t grain = 4096;
    const std::size_t share = ((what.bytes + grid.blocks() - 1) / grid.blocks() + grain - 1) / grain * grain;
    const std::size_t begin = share * grid.block_rank() < what.bytes ? share * grid.block_rank() : what.bytes;
    const std::size_t end = begin + share < what.bytes ? begin + share : what.bytes;
    detail::copy_bytes(block, static_cast<std::byte*>(what.to) + begin,
                       static_cast<const std::byte*>(what.from) + begin, end - begin);
  }
};

}  // namespace beeline
