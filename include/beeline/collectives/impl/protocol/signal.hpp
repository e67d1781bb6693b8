// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The protocol signal: loads and stores of the calling threads, followed by the session's barrier, after which they
/// are complete. Schedules use a protocol's `put`; the session's next barrier makes its stores visible to the peer.

#include "beeline/collectives/session.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline::detail {

template <class Group>
struct SignalStores {
  static constexpr bool by_threads = true;  ///< the threads can also read from peers
  const Group& group;
  const Context& ctx;
  /// Copies to `to` on `peer`.
  BEELINE_HOST_DEVICE void put(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t peer) const {
    copy_bytes(group, ctx.translate(to, peer), from, bytes);
  }
};

}  // namespace beeline::detail
