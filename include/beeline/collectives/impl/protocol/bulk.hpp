// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The protocol bulk: bulk copies by the multiprocessor's copy unit (TMA), and the session's barrier; see signal.hpp.

#include "beeline/collectives/impl/protocol/signal.hpp"
#include "beeline/device/bulk.hpp"

namespace beeline::detail {

template <class BlockGroup>
struct BulkStores {
  static constexpr bool by_threads = false;
  BulkCopies<BlockGroup> copies;
  BEELINE_HOST_DEVICE void put(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t peer) {
    copies.move(copies.context().translate(to, peer), from, bytes, peer);  // between members of one kind no access is
                                                                           // refused
  }
};

/// Calls `work(stores)` with the protocol of `algorithm`: bulk copies, or otherwise stores of threads. Returns
/// invalid_argument if members do not reach each other, or if a bulk copy has no buffer.
template <class Group, class Work>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status with_stores(const Session<Group>& session,
                                                                    const SessionCall& how, Algorithm algorithm,
                                                                    const Work& work) {
  const Context& ctx = session.context();
  if (ctx.mixed) return Status::invalid_argument;
  if (algorithm != Algorithm::bulk) {
    SignalStores<Group> stores{session.group(), ctx};
    return work(stores);
  }
  if constexpr (!std::is_same_v<Group, Thread> && !std::is_same_v<Group, Warp>)
    if (how.buffer != nullptr || executor == DeviceKind::host) {
      BulkStores<Group> stores{{session.group(), ctx, how.buffer}};
      return work(stores);
    }
  return Status::invalid_argument;
}

}  // namespace beeline::detail
