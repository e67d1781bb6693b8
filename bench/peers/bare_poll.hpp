// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A wait without deadline and abort, as the bare peers poll.

#include <cstdint>
#include <cuda/atomic>
#include <type_traits>

#include "beeline/device/context.hpp"
#include "beeline/device/group.hpp"

namespace beeline::bench {

/// Polls until `*here` is at least `value`; whether it came. On a CPU it gives its core away as the library does, or
/// two ranks on one core would spend their slices spinning. A limit on polls, of about a minute, ends it when the peer
/// is gone.
template <cuda::memory_order order, class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE bool bare_poll(const BlockGroup&, const Context& ctx, std::uint64_t* here,
                                                 std::uint64_t value) {
  constexpr std::uint32_t most_polls = std::uint32_t{1} << (std::is_same_v<BlockGroup, Block> ? 27 : 20);
  for (std::uint32_t poll = 0; poll < most_polls; ++poll) {
    if (cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(*here).load(order) >= value) return true;
    machine::back_off(poll, ctx.polling);
  }
  return false;
}

}  // namespace beeline::bench
