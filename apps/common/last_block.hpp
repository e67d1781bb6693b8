// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finding the last of several blocks by a counter: the inter-block synchronisation that cannot deadlock, however many
/// blocks there are and in whatever order they run. Source: seed 000 section 5.8.1, listing 5.6.

#include <cstdint>

#include "beeline/core/macros.hpp"
#include "beeline/device/impl/atomic_word.hpp"

namespace apps {

using DeviceCounter = beeline::machine::DeviceAtomic<std::uint32_t>;

/// Whether this block is the last of `count` blocks to call it. If so, everything that the other blocks did before is
/// visible to it, and the counter is zero again. Every thread of `block` calls it, and gets the same answer.
template <class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE bool is_last(const BlockGroup& block, std::uint32_t* counter, std::uint32_t count) {
  block.sync();
  bool last = false;
  if (block.thread_rank() == 0) {
    const DeviceCounter arrived(*counter);
    last = arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == count;
    if (last) arrived.store(0, std::memory_order_relaxed);
  }
  return block.any(last);
}

}  // namespace apps
