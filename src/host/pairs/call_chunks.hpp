// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Chunks of a collective over pair links, one after the other, with a wait for each.

#include <cstdint>

#include "host/pairs/pair_channel.hpp"

namespace beeline::detail {

/// One member's chunks. All functions return ok; deadline or aborted, recorded; invalid_argument for a chunk of another
/// call, recorded.
class CallChunks {
 public:
  ///   waiting  a context with the deadline of the waits
  CallChunks(const PairLinks& links, const Context& waiting) : links_(links), waiting_(waiting) {}
  explicit CallChunks(const PairLinks& links) : CallChunks(links, links.context()) {}

  /// Sends a chunk to a peer, once there is room.
  [[nodiscard]] Status send(std::uint32_t peer, const ChunkHead& head, const void* data) const {
    const Status status = await_room(peer);
    return status == Status::ok ? links_.put(peer, head, data) : status;
  }
  [[nodiscard]] Status await_room(std::uint32_t peer) const {
    return links_.await_room(waiting_, Operation::collective, peer, &links_, Timeout::none());
  }
  /// Waits for the next chunk from a peer.
  [[nodiscard]] Status await(std::uint32_t peer, const ChunkHead*& chunk) const {
    const Status status = links_.await_chunk(waiting_, Operation::collective, peer, &links_, Timeout::none());
    if (status != Status::ok) return status;
    chunk = links_.arriving(peer);
    return links_.check_call(peer, *chunk);
  }
  /// Waits for the next chunk from a peer, calls `use(data)` and frees its box.
  template <class Use>
  [[nodiscard]] Status take(std::uint32_t peer, const Use& use) const {
    const ChunkHead* chunk = nullptr;
    if (const Status status = await(peer, chunk); status != Status::ok) return status;
    use(reinterpret_cast<const std::byte*>(chunk + 1));
    return links_.release(peer);
  }

 private:
  const PairLinks& links_;
  const Context& waiting_;
};

}  // namespace beeline::detail
