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
    const std::uint64_t number = links_.next_number(peer);
    const PairWait wait{Operation::collective, peer, number, &links_};
    return poll_until(waiting_, wait, Timeout::none(), [&](std::uint64_t& observed) {
      observed = number - 1;
      return links_.has_room(peer) || (links_.work_for(peer) && links_.has_room(peer));
    });
  }
  /// Waits for the next chunk from a peer.
  [[nodiscard]] Status await(std::uint32_t peer, const ChunkHead*& chunk) const {
    const std::uint64_t number = links_.awaited_number(peer);
    const PairWait wait{Operation::collective, peer, number, &links_};
    const Status status = poll_until(waiting_, wait, Timeout::none(), [&](std::uint64_t& observed) {
      observed = number - 1;
      chunk = links_.next(peer);
      if (chunk == nullptr && links_.work_for(peer)) chunk = links_.next(peer);
      return chunk != nullptr;
    });
    return status == Status::ok ? links_.check_call(peer, *chunk) : status;
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
