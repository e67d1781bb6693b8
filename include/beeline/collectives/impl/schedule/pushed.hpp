// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Two shots by stores only, for calls of whole grids: parts go to their owners chunk by chunk, through the owners'
/// channel memory, and owners combine chunks that have arrived while the next chunk is in flight. Over a link, stores
/// are faster than loads: between two H200 stores reach 360 GB/s in each direction and loads 335 with 64 blocks, 365
/// and 337 with 128. Bulk copies are not faster than stores.
///
///     link     P0 P1 C0 P2 C1 P3 C2 ...     P: a chunk's parts, to their owners; C: this member's part, combined, to
///     all members: into their vectors, or, if members do not reach these, into the members' channel memory
///
/// Source: seed 000, 6.8.3 (all-to-all + all-gather).

#include "beeline/collectives/impl/pushed_places.hpp"

namespace beeline::detail {

/// An all-reduce's vectors, and the slice of this session.
template <class T>
struct AllreduceCall {
  CallDescription call;
  T* destination;   ///< [count]
  const T* source;  ///< [count]
  std::size_t count;
  std::uint32_t slice = 0;           ///< index of the slice, less than `call.slices`
  std::uint32_t* tickets = nullptr;  ///< counter of the pieces that the grid's warps take dynamically, for vectors that
                                     ///< are accessed directly
  bool pushes = false;               ///< parts are sent to their owners instead; such a call has no time-out

  /// The same call for other vectors, without slices.
  [[nodiscard]] BEELINE_HOST_DEVICE AllreduceCall of(T* to, const T* from, std::size_t elements) const {
    AllreduceCall other{call, to, from, elements};
    other.call.slices = 1;
    return other;
  }
  /// The slice as a separate call.
  [[nodiscard]] BEELINE_HOST_DEVICE AllreduceCall own() const {
    const Range mine = part_of(count, call.slices, slice, elements_in_16<T>);
    return of(destination + mine.first, source + mine.first, mine.count);
  }
};

/// Stores a chunk of this member's part of the result to its own vector, and to the other members' channel memory.
struct PlacedResults {
  const Context& ctx;
  const PushedPlaces& places;
  std::uint32_t number;
  std::byte* own;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uintptr_t bits() const { return reinterpret_cast<std::uintptr_t>(own); }
  template <class T, class Word>
  BEELINE_INLINE BEELINE_HOST_DEVICE void store(std::size_t place, const Word& word) const {
    store_vector<T>(own + place, word);
    for (std::uint32_t distance = 1; distance < ctx.size; ++distance) {
      const std::uint32_t peer = peer_ahead(ctx, distance);
      store_vector<T>(places.at(PushedPlaces::results, peer, number) + place, word);
    }
  }
};

/// A session's steps for the chunks of a call, by number. Chunks are distributed to the sessions in turn.
template <class T, class Group>
class PushedChunks {
 public:
  BEELINE_HOST_DEVICE PushedChunks(const Session<Group>& session, const AllreduceCall<T>& call)
      : session_(session), ctx_(session.context()), call_(call), places_(session) {}

  /// Whether chunk `number` exists: the first part is the longest.
  [[nodiscard]] BEELINE_HOST_DEVICE bool has(std::uint32_t number) const { return share(0, number).count != 0; }

  /// Sends the parts to their owners.
  BEELINE_INLINE BEELINE_HOST_DEVICE void push(std::uint32_t number) const {
    BEELINE_NO_UNROLL
    for (std::uint32_t distance = 1; distance < ctx_.size; ++distance) {
      const std::uint32_t peer = peer_ahead(ctx_, distance);
      const Range theirs = share(peer, number);
      copy_bytes(session_.group(), places_.at(PushedPlaces::parts, peer, number), call_.source + theirs.first,
                 theirs.count * sizeof(T));
    }
  }

  /// Combines this member's part, which all members have sent.
  ///   results  called with the index of an element: returns the addresses of the results from this element on
  template <class Results>
  BEELINE_INLINE BEELINE_HOST_DEVICE void combine(std::uint32_t number, const Results& results) const {
    const Range mine = share(ctx_.rank, number);
    combine_to(number, mine, results(mine.first));
  }
  /// As above, for members that do not reach each other's vectors.
  BEELINE_INLINE BEELINE_HOST_DEVICE void combine(std::uint32_t number) const {
    const Range mine = share(ctx_.rank, number);
    auto* const own = reinterpret_cast<std::byte*>(call_.destination + mine.first);
    combine_to(number, mine, PlacedResults{ctx_, places_, number, own});
  }
  /// Copies the results of the other members' parts out of the channel memory.
  BEELINE_INLINE BEELINE_HOST_DEVICE void take(std::uint32_t number) const {
    const CollectedVectors come = places_.come(PushedPlaces::results, number);
    BEELINE_NO_UNROLL
    for (std::uint32_t k = 0; k < come.count; ++k) {
      const Range theirs = share(k < ctx_.rank ? k : k + 1, number);
      copy_bytes(session_.group(), call_.destination + theirs.first, come.of(k), theirs.count * sizeof(T));
    }
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE Range share(std::uint32_t member, std::uint32_t number) const {
    const std::size_t most = places_.bytes() / sizeof(T);
    const Range part = part_of(call_.count, ctx_.size, member, elements_in_16<T>);
    const std::size_t first = (std::size_t{number} * call_.call.slices + call_.slice) * most;
    if (first >= part.count) return Range{part.first, 0};
    return Range{part.first + first, part.count - first < most ? part.count - first : most};
  }

  template <class Results>
  BEELINE_INLINE BEELINE_HOST_DEVICE void combine_to(std::uint32_t number, Range mine, const Results& to) const {
    const FetchedVectors vectors{reinterpret_cast<const std::byte*>(call_.source + mine.first),
                                 places_.come(PushedPlaces::parts, number), ctx_.rank};
    combine_vectors<T, 4>({session_.group().thread_rank(), session_.group().size()}, vectors,
                          reinterpret_cast<const void*>(to.bits()), mine.count, call_.call.reduction,
                          [&](std::size_t place, const auto& word) { to.template store<T>(place, word); });
  }

  const Session<Group>& session_;
  const Context& ctx_;
  const AllreduceCall<T>& call_;
  PushedPlaces places_;
};

/// The all-reduce on GPUs, after the address exchange.
///   reaches  whether members reach each other's vectors
///   results  as in `PushedChunks::combine`, if they do
template <class T, class Group, class Results>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_by_pushes(Session<Group>& session,
                                                                         const AllreduceCall<T>& call, bool reaches,
                                                                         Timeout timeout, const Results& results) {
  const PushedChunks<T, Group> chunks(session, call);
  std::uint32_t number = 0;
  for (; number == 0 || chunks.has(number - 1); ++number) {
    const bool sends = chunks.has(number);
    if (sends) {
      chunks.push(number);
      session.tell_round();
    }
    if (number == 0) continue;
    if (const Status status = session.await_round(sends ? 1 : 0, timeout); status != Status::ok) return status;
    if (reaches) {
      chunks.combine(number - 1, results);
      continue;
    }
    chunks.combine(number - 1);
    // The other members have signalled chunk `number` - 1, after they stored the results of the chunk that is taken
    // here.
    if (number > 2) chunks.take(number - 3);
  }
  if (const Status status = session.barrier(Order::memory, timeout); status != Status::ok) return status;
  if (!reaches)
    for (std::uint32_t left = number > 3 ? number - 3 : 0; chunks.has(left); ++left) chunks.take(left);
  session.group().sync();  // the whole result has arrived
  return Status::ok;
}

}  // namespace beeline::detail
