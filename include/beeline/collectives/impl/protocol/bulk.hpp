// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The protocol bulk: copies of the multiprocessor's unit for them (TMA), and the session's barrier; see signal.hpp.

#include "beeline/collectives/impl/protocol/signal.hpp"
#include "beeline/device/bulk.hpp"

namespace beeline::detail {

template <class BlockGroup>
struct BulkStores {
  static constexpr bool by_threads = false;
  BulkCopies<BlockGroup> copies;
  BEELINE_HOST_DEVICE void put(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t peer) {
    copies.move(copies.context().translate(to, peer), from, bytes, peer);  // of members of one kind nothing is refused
  }
};

/// `work(stores)` with the protocol of stores that `algorithm` asks for: bulk, or threads' otherwise. invalid_argument
/// where members do not reach each other, and for bulk by who has no buffer for it.
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
