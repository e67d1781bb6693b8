// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What stores pieces into peers' memory: the calling threads, or bulk copies.

#include "beeline/collectives/session.hpp"
#include "beeline/device/bulk.hpp"

namespace beeline::detail {

/// Copies to `to` on `peer`: by loads and stores of the group.
template <class Group>
struct StoreMover {
  static constexpr bool by_threads = true;
  const Group& group;
  const Context& ctx;
  BEELINE_HOST_DEVICE void put(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t peer) const {
    copy_bytes(group, ctx.translate(to, peer), from, bytes);
  }
};
/// The same in bulk.
template <class BlockGroup>
struct BulkMover {
  static constexpr bool by_threads = false;
  BulkCopies<BlockGroup> copies;
  BEELINE_HOST_DEVICE void put(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t peer) {
    copies.move(copies.context().translate(to, peer), from, bytes, peer);  // of members of one kind nothing is refused
  }
};

/// Bytes of the channel's memory for the pieces of one sender: at least 16.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE std::size_t staged_piece_bytes(const Session<Group>& session) {
  return session.staging_bytes() / session.context().size & ~std::size_t{15};
}

/// Where this rank's slot begins.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::byte* own_slot(const Context& ctx) {
  return ctx.range + (std::size_t{ctx.own_world_rank} << ctx.slot_shift);
}

}  // namespace beeline::detail
