// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bare flag ping-pong: store to the peer's word, poll the own one, and nothing else.

#include <cstdint>
#include <cuda/atomic>

#include "harness/timed_kernel.hpp"

namespace beeline::bench {

enum class BareOrder {
  relaxed,  ///< relaxed store, relaxed poll
  acquire,  ///< relaxed store, acquire poll
  memory    ///< release store, acquire poll
};

/// One thread of each rank. It knows no deadline; a limit on polls, which take half a minute or more, ends it when the
/// peer is gone.
template <BareOrder order>
struct BareFlagPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, Loop loop, std::uint64_t* here,
                                      std::uint64_t* there) const {
    if (grid.block().thread_rank() != 0) return;
    using Word = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
    constexpr auto release = order == BareOrder::memory ? cuda::memory_order_release : cuda::memory_order_relaxed;
    constexpr auto acquire = order == BareOrder::relaxed ? cuda::memory_order_relaxed : cuda::memory_order_acquire;
    constexpr std::uint64_t most_polls = std::uint64_t{1} << 29;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            Word(*there).store(sequence, release);
            return true;
          },
          [&] {
            for (std::uint64_t poll = 0; poll < most_polls; ++poll) {
              if (Word(*here).load(acquire) >= sequence) return true;
              machine::back_off(0, 1);
            }
            return false;
          });
    });
  }
};

}  // namespace beeline::bench
