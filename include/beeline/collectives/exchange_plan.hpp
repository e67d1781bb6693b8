// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which bytes each member sends to each, and where they are to lie.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/collectives/operation.hpp"
#include "beeline/collectives/words.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline {

/// Pieces whose lengths differ from peer to peer, in elements. In memory that the calling threads can read, unchanged
/// until the call has ended. What a member receives from a peer is as long as what that peer sends to it.
/// Source: MPI 4.0, 6.8, MPI_Alltoallv.
struct PieceTable {
  const std::size_t* send_counts;      ///< [members]
  const std::size_t* send_offsets;     ///< [members] from the source
  const std::size_t* receive_counts;   ///< [members]
  const std::size_t* receive_offsets;  ///< [members] from the destination
};

namespace detail {

/// `bytes` bytes at `at`; none: nothing is sent.
template <class Byte>
struct Piece {
  Byte* at;
  std::size_t bytes;

  /// At most `most` bytes of it, from `done` on.
  [[nodiscard]] BEELINE_HOST_DEVICE Piece part(std::size_t done, std::size_t most) const {
    if (done >= bytes) return {at, 0};
    return {at + done, bytes - done < most ? bytes - done : most};
  }
};

/// What one member of an exchange sends and receives.
struct ExchangePlan {
  CollectiveOperation operation;
  ElementMark element;  ///< for members to compare: what moves is bytes
  std::byte* destination;
  const std::byte* source;
  std::size_t bytes;                    ///< of each piece
  std::size_t send_step, receive_step;  ///< from one peer's piece to the next one's, in bytes
  std::uint32_t sender, receiver;       ///< the only one, or `no_peer`: all
  PieceTable table = {};                ///< instead of `bytes` and steps
  std::size_t element_bytes = 1;        ///< of the table's elements
  ThreadShare share = {0, 1};           ///< which slice: `bytes` are the slice's, the table's counts whole

  [[nodiscard]] BEELINE_HOST_DEVICE bool varies() const { return table.send_counts != nullptr; }
  /// Whether all send to all.
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
  /// Where lengths differ: bytes of a whole piece, of which lanes have slices.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t sent_bytes(std::uint32_t peer) const {
    return table.send_counts[peer] * element_bytes;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t expected_bytes(std::uint32_t peer) const {
    return table.receive_counts[peer] * element_bytes;
  }
  /// The longest piece that comes from others.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t longest_incoming(const Context& ctx) const {
    std::size_t longest = 0;
    BEELINE_NO_UNROLL
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      const std::size_t length = peer == ctx.rank ? 0 : incoming(ctx, peer).bytes;
      longest = length > longest ? length : longest;
    }
    return longest;
  }

  /// Slice `index` of `count` of every piece.
  [[nodiscard]] BEELINE_HOST_DEVICE ExchangePlan slice(std::uint32_t index, std::uint32_t count) const {
    ExchangePlan plan = *this;
    plan.share = {index, count};
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
    const Range mine = part_of(count * element_bytes, static_cast<std::uint32_t>(share.count),
                               static_cast<std::uint32_t>(share.index), 16);
    return {vector + offset * element_bytes + mine.first, mine.count};
  }
};
static_assert(std::is_trivially_copyable_v<ExchangePlan>);

/// What this member sends to itself.
template <class Group>
BEELINE_HOST_DEVICE void copy_own_piece(const Lane<Group>& lane, const ExchangePlan& plan) {
  const Piece<const std::byte> from = plan.outgoing(lane.context(), lane.context().rank);
  const Piece<std::byte> to = plan.incoming(lane.context(), lane.context().rank);
  if (from.at != to.at && from.bytes == to.bytes) copy_bytes(lane.group(), to.at, from.at, to.bytes);
}

}  // namespace detail

}  // namespace beeline
