// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The protocol signal: loads and stores of the calling threads, and behind them the session's barrier, which says that
/// they have arrived. Schedules of stores ask a protocol for `put`, whose stores the next barrier of the session makes
/// visible to the peer.

#include "beeline/collectives/session.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline::detail {

template <class Group>
struct SignalStores {
  static constexpr bool by_threads = true;  ///< which also read from peers
  const Group& group;
  const Context& ctx;
  /// Copies to `to` on `peer`.
  BEELINE_HOST_DEVICE void put(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t peer) const {
    copy_bytes(group, ctx.translate(to, peer), from, bytes);
  }
};

}  // namespace beeline::detail
