// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Movement by pushes, for calls of whole grids of two GPUs whose members do not reach each other's vectors. Pieces go
/// through the receivers' channel memory, chunk by chunk. While a chunk is in flight, a member copies chunks that have
/// arrived to their destination, and its piece to itself.
///
///     link     P0 P1 P2 P3 ...         P: a chunk of the piece to the peer
///     own      O0 O1 T0 O2 T1 ...      O: a chunk of the own piece; T: a received chunk, to its destination
///
/// Source: seed 000, 6.8.2 and 6.8.3.

#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/collectives/impl/pushed_places.hpp"

namespace beeline::detail {

/// A session's steps for the chunks of its slice of every piece, by number.
template <class Group>
class MovedChunks {
 public:
  BEELINE_HOST_DEVICE MovedChunks(const Session<Group>& session, const MovementPlan& plan)
      : group_(session.group()), ctx_(session.context()), plan_(plan), places_(session) {}

  [[nodiscard]] BEELINE_HOST_DEVICE bool has(std::uint32_t number) const {
    return std::size_t{number} * places_.bytes() < plan_.bytes;
  }
  /// Sends a chunk to each other member.
  BEELINE_HOST_DEVICE void push(std::uint32_t number) const {
    BEELINE_NO_UNROLL
    for (std::uint32_t distance = 1; distance < ctx_.size; ++distance) {
      const std::uint32_t peer = peer_ahead(ctx_, distance);
      const Piece<const std::byte> piece = part(plan_.outgoing(ctx_, peer), number);
      copy_bytes(group_, places_.at(PushedPlaces::parts, peer, number), piece.at, piece.bytes);
    }
  }
  /// Copies a chunk of this member's piece to itself.
  BEELINE_HOST_DEVICE void keep(std::uint32_t number) const {
    const Piece<const std::byte> from = part(plan_.outgoing(ctx_, ctx_.rank), number);
    const Piece<std::byte> to = part(plan_.incoming(ctx_, ctx_.rank), number);
    if (to.at != from.at) copy_bytes(group_, to.at, from.at, to.bytes);
  }
  /// Copies a chunk from every other member out of the channel memory.
  BEELINE_HOST_DEVICE void take(std::uint32_t number) const {
    const CollectedVectors come = places_.come(PushedPlaces::parts, number);
    BEELINE_NO_UNROLL
    for (std::uint32_t k = 0; k < come.count; ++k) {
      const Piece<std::byte> piece = part(plan_.incoming(ctx_, k < ctx_.rank ? k : k + 1), number);
      copy_bytes(group_, piece.at, come.of(k), piece.bytes);
    }
  }

 private:
  template <class Byte>
  [[nodiscard]] BEELINE_HOST_DEVICE Piece<Byte> part(const Piece<Byte>& piece, std::uint32_t number) const {
    return piece.part(std::size_t{number} * places_.bytes(), places_.bytes());
  }

  const Group& group_;
  const Context& ctx_;
  const MovementPlan& plan_;
  PushedPlaces places_;
};

/// The movement after the address exchange. The call has no time-out.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status move_by_pushes(Session<Group>& session, const MovementPlan& plan,
                                                        Timeout timeout) {
  const MovedChunks<Group> chunks(session, plan);
  session.note(Transfer::staged);
  for (std::uint32_t number = 0; number == 0 || chunks.has(number - 1); ++number) {
    const bool sends = chunks.has(number);
    if (sends) {
      chunks.push(number);
      session.tell_round();
      chunks.keep(number);
    }
    if (number == 0) continue;
    if (const Status status = session.await_round(sends ? 1 : 0, timeout); status != Status::ok) return status;
    chunks.take(number - 1);
  }
  const Status status = session.barrier(Order::memory, timeout);
  session.group().sync();  // the whole result has arrived
  return status;
}

}  // namespace beeline::detail
