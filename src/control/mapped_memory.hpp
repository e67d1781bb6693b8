// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Looks up whether symmetric memory is mapped; an engine does so for each command.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>

#include "beeline/transport/engine.hpp"

namespace beeline {

/// Whether bytes of a slot lie in a heap of its rank: heaps stay mapped as long as the world exists.
[[nodiscard]] inline bool lies_in_heap(const Context& ctx, std::uint64_t offset, std::size_t bytes) {
  const SlotLayout slot{ctx.slot_shift};
  const bool is_pinned = offset >= slot.host_area_offset() && offset < slot.host_segments_offset();
  const std::uint64_t end = is_pinned ? ctx.pinned_heap_end : ctx.heap_end;
  return (is_pinned || offset < slot.device_segments_offset()) && offset < end && bytes <= end - offset;
}

/// Caches the pieces it has found: a search takes a lock that all threads share. Used by one thread.
class MappedMemory {
 public:
  explicit MappedMemory(const EngineClient& client) : client_(client) {}

  /// Whether all bytes from `address` on lie in one piece of symmetric memory; on a host rank, whose threads do not
  /// access GPU memory, of host memory.
  [[nodiscard]] bool holds(const void* address, std::size_t bytes) {
    const std::uint64_t unmaps = client_.unmaps->load(std::memory_order_acquire);
    if (unmaps != unmaps_) {
      pieces_.clear();
      last_ = {};
      unmaps_ = unmaps;
    }
    return last_.holds(address, bytes) || find(address).holds(address, bytes);
  }
  /// As `holds`, and whether the piece belongs to a heap.
  [[nodiscard]] bool holds_for_good(const void* address, std::size_t bytes) {
    const Context& ctx = client_.context;
    return ctx.owner_of(address) != no_peer && lies_in_heap(ctx, ctx.offset_in_slot(address), bytes) &&
           holds(address, bytes);
  }
  /// As `holds`, and whether the piece is in host memory.
  [[nodiscard]] bool holds_in_host_memory(const void* address, std::size_t bytes) {
    return holds(address, bytes) && last_.is_host;
  }

 private:
  struct Piece {
    std::span<const std::byte> bytes;
    bool is_host = false;

    [[nodiscard]] bool holds(const void* address, std::size_t count) const {
      const std::size_t offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - bytes.data());
      return offset < bytes.size() && count <= bytes.size() - offset;
    }
  };
  const Piece& find(const void* address) {
    const auto behind = pieces_.upper_bound(static_cast<const std::byte*>(address));
    if (behind != pieces_.begin()) last_ = std::prev(behind)->second;
    if (last_.holds(address, 1)) return last_;
    last_ = {client_.piece_at(address), client_.is_host_memory(address)};
    if (!last_.is_host && !client_.device.is_gpu()) last_ = {};
    if (!last_.bytes.empty()) pieces_[last_.bytes.data()] = last_;
    return last_;
  }

  const EngineClient& client_;
  std::map<const std::byte*, Piece> pieces_;  ///< by a piece's first byte
  Piece last_;
  std::uint64_t unmaps_ = 0;
};

}  // namespace beeline
