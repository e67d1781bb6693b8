// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bytes that each member sends to each other member, and their destinations.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/collectives/impl/vector_mappings.hpp"
#include "beeline/collectives/impl/words.hpp"
#include "beeline/collectives/operation.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/selection/preferences.hpp"

namespace beeline::detail {

/// `bytes` bytes at `at`; with 0 bytes nothing is sent.
template <class Byte>
struct Piece {
  Byte* at;
  std::size_t bytes;

  /// At most `most` bytes of the piece, from `done` on.
  [[nodiscard]] BEELINE_HOST_DEVICE Piece part(std::size_t done, std::size_t most) const {
    if (done >= bytes) return {at, 0};
    return {at + done, bytes - done < most ? bytes - done : most};
  }
};

/// Bytes of a slice. Not inline, since code for pieces of different lengths calls it at many places.
BEELINE_COLD [[nodiscard]] BEELINE_HOST_DEVICE inline Range slice_of(std::size_t bytes, std::uint32_t slices,
                                                                     std::uint32_t index) {
  return part_of(bytes, slices, index, 16);
}

/// The data that one member of a movement sends and receives.
struct MovementPlan {
  CallDescription call;  ///< with bytes as elements
  std::byte* destination;
  const std::byte* source;
  std::size_t bytes;                    ///< bytes of each piece
  std::size_t send_step, receive_step;  ///< from one peer's piece to the next peer's piece, in bytes
  std::uint32_t sender, receiver;       ///< the only sender or receiver; `no_peer`: all members
  PieceTable table = {};                ///< used instead of `bytes` and the steps if lengths differ
  std::size_t element_bytes = 1;        ///< bytes of the table's elements
  ThreadShare share = {0, 1};           ///< the slice: `bytes` is the size of the slice, the table's counts are those
                                        ///< of whole pieces
  std::size_t whole_bytes = 0;          ///< bytes of each piece before it was cut into slices
  std::size_t least_bytes = 0;          ///< with a table: smallest slice; shorter slices are omitted
  /// The members' mappings of the vectors; nullptr: members reach only heaps.
  const VectorMappings* mappings = nullptr;
  std::uint32_t* tickets = nullptr;  ///< counter of the chunks of all pieces that the grid's warps take dynamically;
                                     ///< nullptr: slices are used

  [[nodiscard]] BEELINE_HOST_DEVICE bool varies() const { return table.send_counts != nullptr; }
  /// Whether all members send to all members.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_full() const { return sender == no_peer && receiver == no_peer; }

  [[nodiscard]] BEELINE_HOST_DEVICE Piece<const std::byte> outgoing(const Context& ctx, std::uint32_t peer) const {
    if (!connects(ctx.rank, peer)) return {nullptr, 0};
    if (varies()) return piece_of(source, table.send_counts[peer], table.send_offsets[peer]);
    return {source + peer * send_step, bytes};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Piece<std::byte> incoming(const Context& ctx, std::uint32_t peer) const {
    if (!connects(peer, ctx.rank)) return {nullptr, 0};
    if (varies()) return piece_of(destination, table.receive_counts[peer], table.receive_offsets[peer]);
    return {destination + peer * receive_step, bytes};
  }
  /// If lengths differ: bytes of a whole piece, before it is cut into slices.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t sent_bytes(std::uint32_t peer) const {
    return table.send_counts[peer] * element_bytes;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t expected_bytes(std::uint32_t peer) const {
    return table.receive_counts[peer] * element_bytes;
  }
  /// The plan with a table, without pieces (of this slice) of up to `most` bytes.
  [[nodiscard]] BEELINE_HOST_DEVICE MovementPlan without_short(std::size_t most) const {
    MovementPlan plan = *this;
    plan.least_bytes = most + 1;
    return plan;
  }

  /// The first byte of the slice in every piece.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t first_byte() const {
    return part_of(whole_bytes, static_cast<std::uint32_t>(share.count), static_cast<std::uint32_t>(share.index), 16)
        .first;
  }

  /// Slice `index` of `count` of every piece.
  [[nodiscard]] BEELINE_HOST_DEVICE MovementPlan slice(std::uint32_t index, std::uint32_t count) const {
    MovementPlan plan = *this;
    plan.share = {index, count};
    plan.call.slices = count;
    plan.whole_bytes = bytes;
    if (varies() || count == 1) return plan;
    const Range mine = part_of(bytes, count, index, 16);
    if (plan.source != nullptr) plan.source += mine.first;
    if (plan.destination != nullptr) plan.destination += mine.first;
    plan.bytes = mine.count;
    return plan;
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE bool connects(std::uint32_t from, std::uint32_t to) const {
    return (sender == no_peer || sender == from) && (receiver == no_peer || receiver == to);
  }
  template <class Byte>
  [[nodiscard]] BEELINE_HOST_DEVICE Piece<Byte> piece_of(Byte* vector, std::size_t count, std::size_t offset) const {
    const Range mine = slice_of(count * element_bytes, static_cast<std::uint32_t>(share.count),
                                static_cast<std::uint32_t>(share.index));
    if (mine.count < least_bytes) return {nullptr, 0};
    return {vector + offset * element_bytes + mine.first, mine.count};
  }
};
static_assert(std::is_trivially_copyable_v<MovementPlan>);

/// The plan of a call whose pieces have `bytes` each.
[[nodiscard]] BEELINE_HOST_DEVICE inline MovementPlan plan_of(const CallDescription& call, void* destination,
                                                              const void* source, std::size_t bytes) {
  return {.call = call,
          .destination = static_cast<std::byte*>(destination),
          .source = static_cast<const std::byte*>(source),
          .bytes = bytes,
          .send_step = contains(piecewise_sends, call.operation) ? bytes : 0,
          .receive_step = contains(piecewise_receives, call.operation) ? bytes : 0,
          .sender = contains(sends_of_root, call.operation) ? call.root : no_peer,
          .receiver = contains(receives_of_root, call.operation) ? call.root : no_peer};
}

/// The part of this member's piece to itself that a session copies.
struct OwnPiece {
  Piece<const std::byte> from;
  Piece<std::byte> to;
  bool first;  ///< whether it is copied before other members' pieces are stored

  BEELINE_HOST_DEVICE OwnPiece(const Context& ctx, const MovementPlan& plan)
      : from(plan.outgoing(ctx, ctx.rank)), to(plan.incoming(ctx, ctx.rank)), first(false) {
    const std::size_t whole = plan.varies() ? plan.sent_bytes(ctx.rank) : plan.whole_bytes;
    const auto slices = static_cast<std::uint32_t>(plan.share.count),
               index = static_cast<std::uint32_t>(plan.share.index);
    if (slices == 1 || whole < slices * selection::least_paired_bytes || from.bytes == 0) return;
    first = true;
    const std::size_t next = index + 1 < slices ? part_of(whole, slices, index + 1, 16).count : 0;
    from.bytes = to.bytes = index % 2 != 0 ? 0 : from.bytes + next;
  }
};

/// Copies this member's piece to itself.
template <class Group>
BEELINE_HOST_DEVICE void copy_own_piece(const Group& group, const OwnPiece& own) {
  if (own.from.at != own.to.at && own.from.bytes == own.to.bytes)
    copy_bytes(group, own.to.at, own.from.at, own.to.bytes);
}

}  // namespace beeline::detail
