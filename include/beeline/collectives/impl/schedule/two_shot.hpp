// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Two shots: each member owns a part of the vectors, combines it, and sends the result to all. Source: seed 000, 6.8.3
/// (work sharing; all-to-all + all-gather).
///
/// In packets: parts are sent to their owners, and results to all members, into the second half of the areas, so that
/// no barrier is needed between the two steps. In the protocol signal each member reads its part from all members, and
/// stores the result to all: symmetric vectors are accessed directly; other vectors go through the channel's memory,
/// chunk by chunk. Long parts are sent to their owners instead (schedule/pushed.hpp).

#include "beeline/collectives/impl/combine.hpp"
#include "beeline/collectives/impl/handshake.hpp"
#include "beeline/collectives/impl/protocol/packet_round.hpp"
#include "beeline/collectives/impl/schedule/pushed.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline::detail {

struct TwoShot {
  static constexpr bool by_parts = true;

  /// Largest number of units of a vector in a round.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::size_t most_units(std::uint32_t area_units, std::uint32_t members) {
    return std::size_t{area_units} / 2 * members;
  }

  /// After a time-out the whole round is repeated, since received units are still in the area.
  template <class T, class Round>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE static Status run(
      const Round& round, const typename Round::template Vector<T>& destination,
      const typename Round::template Vector<const T>& source, Reduction reduction) {
    constexpr std::uint32_t unit_words = Round::unit_words;
    const UnitParts<unit_words> cut(source.words(), round.size());
    const CutVector<typename Round::template Vector<const T>, unit_words> parts{source, cut};
    const CutVector<typename Round::template Vector<T>, unit_words> results{destination, cut};
    const std::uint32_t rank = round.context().rank, sent = parts.whole_units(), received = results.whole_units();
    if (round.is_new()) round.send_parts(parts, sent);
    const auto give = [&](const auto& place, auto whole, const auto& result, bool is_own) {
      if (is_own) results.of(rank).template store<whole()>(place, result);
      round.template send_on<whole()>(place, round.half(), result);
    };
    const Status status = combine_units<T>(round, parts.of(rank), sent < received ? sent : received, reduction, give);
    return status == Status::ok ? round.receive_parts(round.half(), results, received) : status;
  }
};
template <>
struct PacketSchedule<Schedule::two_shot> {
  using type = TwoShot;
};

/// The start of a part's result in the vectors of all members.
struct MemberResults {
  const Context& ctx;
  std::byte* to;  ///< address in this member's vector

  [[nodiscard]] BEELINE_HOST_DEVICE std::uintptr_t bits() const { return reinterpret_cast<std::uintptr_t>(to); }
  template <class T, class Word>
  BEELINE_INLINE BEELINE_HOST_DEVICE void store(std::size_t place, const Word& word) const {
    for (std::uint32_t step = 0; step < ctx.size; ++step)  // each member begins with a different member
      store_vector<T>(ctx.translate(to + place, peer_ahead(ctx, step)), word);
  }
};

/// Reads this member's part, of `count` elements, from all members, combines it, and writes the result to all. The
/// words are distributed to the sessions in turn, so that sessions read neighbouring words at the same time.
template <class T, class Group, class Vectors, class Results>
BEELINE_INLINE BEELINE_HOST_DEVICE void reduce_share(const Session<Group>& session, const AllreduceCall<T>& call,
                                                     std::size_t count, const Vectors& from, const Results& results) {
  const std::size_t group_size = session.group().size();
  const ThreadShare threads{call.slice * group_size + session.group().thread_rank(), call.call.slices * group_size,
                            call.tickets};
  combine_vectors<T>(threads, from, reinterpret_cast<const void*>(results.bits()), count, call.call.reduction,
                     [&](std::size_t place, const auto& word) { results.template store<T>(place, word); });
}

/// For an all-reduce of symmetric vectors: a function from an element's index to the addresses of its result at all
/// members.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE auto results_of(const Context& ctx, const AllreduceCall<T>& call) {
  return [&ctx, to = call.destination](std::size_t first) {
    return MemberResults{ctx, reinterpret_cast<std::byte*>(to + first)};
  };
}

/// `reduce_share` for symmetric vectors.
template <class T, class Group>
BEELINE_INLINE BEELINE_HOST_DEVICE void reduce_own_share(const Session<Group>& session, const AllreduceCall<T>& call) {
  const Context& ctx = session.context();
  const Range mine = part_of(call.count, ctx.size, ctx.rank, elements_in_16<T>);
  const MemberVectors from{ctx, reinterpret_cast<const std::byte*>(call.source + mine.first)};
  reduce_share(session, call, mine.count, from, results_of(ctx, call)(mine.first));
}

/// The stage of a call, at which it continues after a time-out.
enum PeerStage : std::uint32_t { compare = 0, reduce_in_place, end_in_place, copy_in, reduce_copies, copy_out };

/// All-reduce of any count. Vectors that the members do not reach are copied into one half of the channel's memory, and
/// their results out of the other half.
///   compare  a handshake: sets its argument to staged, or to how members reach all vectors
///   results  called with the index of an element, if members reach the vectors: returns the addresses of the results
///            from this element on
///   reduce   reduces this member's part; `staged`: of vectors in the channel's memory
template <class T, class Group, class Compare, class Results, class Reduce>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce_in_two_shots(Session<Group>& session,
                                                                               const AllreduceCall<T>& call,
                                                                               Timeout timeout, const Compare& compare,
                                                                               const Results& results,
                                                                               const Reduce& reduce) {
  if (const Status status = session.begin(call.call); status != Status::ok) return status;
  if (session.stage() == PeerStage::compare) {
    Transfer how = Transfer::staged;
    if (const Status status = compare(how); status != Status::ok) return status;
    session.note(how);
    if constexpr (executor == DeviceKind::gpu)
      if (call.pushes) return reduce_by_pushes(session, call, how != Transfer::staged, timeout, results);
    session.set_stage(how != Transfer::staged ? PeerStage::reduce_in_place : PeerStage::copy_in);
  }
  const bool staged = session.stage() >= PeerStage::copy_in;
  const AllreduceCall<T> own = call.own();
  const std::size_t most = session.staging_bytes() / sizeof(T);
  T* const in = reinterpret_cast<T*>(session.staging(0));
  T* const out = reinterpret_cast<T*>(session.staging(1));
  std::size_t done = session.offset();
  do {
    const std::size_t some = own.count - done < most ? own.count - done : most;
    if (session.stage() == PeerStage::copy_in) {
      copy_bytes(session.group(), in, own.source + done, some * sizeof(T));
      session.set_stage(PeerStage::reduce_copies);
    }
    if (session.stage() == PeerStage::reduce_copies)
      if (const Status status = session.barrier(Order::memory, timeout); status != Status::ok) return status;
    if (session.stage() == PeerStage::reduce_copies || session.stage() == PeerStage::reduce_in_place) {
      reduce(staged ? call.of(out, in, some) : call, staged);
      session.set_stage(staged ? PeerStage::copy_out : PeerStage::end_in_place);
    }
    if (const Status status = session.barrier(Order::memory, timeout); status != Status::ok) return status;
    if (!staged) break;
    copy_bytes(session.group(), own.destination + done, out, some * sizeof(T));
    done += some;
    session.set_offset(done);
    session.set_stage(PeerStage::copy_in);
  } while (done < own.count);
  session.group().sync();  // the whole result has arrived
  session.set_stage(PeerStage::compare);
  session.set_offset(0);
  return Status::ok;
}

/// `allreduce_in_two_shots` with a handshake that finds symmetric vectors.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce_two_shot(Session<Group>& session,
                                                                           const AllreduceCall<T>& call,
                                                                           Timeout timeout) {
  const auto compare = [&](Transfer& how) {
    return compare_alike(session, call.destination, call.source, timeout, how);
  };
  return allreduce_in_two_shots(session, call, timeout, compare, results_of(session.context(), call),
                                [&](const AllreduceCall<T>& some, bool) { reduce_own_share(session, some); });
}

}  // namespace beeline::detail
