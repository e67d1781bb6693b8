// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collected: reductions through the channel's memory, as seed 000 describes them (6.8): vectors are collected on one
/// member, on all members, or in parts on the parts' owners, and combined there. Results for other members are then
/// written to them.

#include "beeline/collectives/impl/reduction_plan.hpp"
#include "beeline/collectives/impl/schedule/staged.hpp"

namespace beeline::detail {

/// The steps of read, gather, gather_cast, allgather, alltoall_gather, alltoall_allgather (and in bulk), and of a
/// reduce-scatter by parts.
///
/// Algorithms with one step use the halves of the memory for chunks in turn: a half is written again after the next
/// chunk's barrier. Algorithms with two steps collect vectors in one half and results in the other half.
template <class T, class Group, class Stores>
struct CollectSteps {
  const Session<Group>& session;
  const ReductionPlan<T>& plan;
  Stores& stores;
  bool reads;   ///< each member copies its vector to its own channel memory, and all members read it there
  bool shares;  ///< vectors are combined in parts, each by its owner
  bool casts;   ///< results are written to other members

  [[nodiscard]] BEELINE_HOST_DEVICE const Context& ctx() const { return session.context(); }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t number() const { return casts ? 2 : 1; }
  /// Bytes of channel memory for the vector of one member, or for one part of a vector.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t slot_bytes() const {
    return reads ? session.staging_bytes() : staged_piece_bytes(session);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t most() const {
    return slot_bytes() / sizeof(T) * (shares ? ctx().size : 1);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* collected(std::size_t done) const {
    return session.staging(casts ? 0 : static_cast<std::uint32_t>(done / most() & 1u));
  }
  /// The range of a chunk that `member` combines.
  [[nodiscard]] BEELINE_HOST_DEVICE Range share_of(std::uint32_t member, std::size_t count) const {
    if (shares) return part_of(count, ctx().size, member, elements_in_16<T>);
    const bool is_collector = plan.scatters() || (casts ? member == collector() : plan.is_received_by(member));
    return {0, is_collector ? count : 0};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t collector() const {
    return plan.call.root == no_peer ? 0 : plan.call.root;
  }

  BEELINE_HOST_DEVICE void before(std::uint32_t step, std::size_t done, std::size_t count) {
    if (step == 1) return;
    if (reads) return copy_bytes(session.group(), collected(done), plan.source + done, count * sizeof(T));
    std::byte* const mine = collected(done) + ctx().rank * slot_bytes();
    BEELINE_NO_UNROLL
    for (std::uint32_t k = 1; k <= ctx().size; ++k) {
      const std::uint32_t peer = peer_ahead(ctx(), k);
      const Range share = share_of(peer, count);
      const T* from = plan.source + (plan.scatters() ? peer * plan.part_step : 0) + done + share.first;
      if (share.count != 0) stores.put(mine, reinterpret_cast<const std::byte*>(from), share.count * sizeof(T), peer);
    }
  }

  BEELINE_HOST_DEVICE void after(std::uint32_t step, std::size_t done, std::size_t count) {
    T* const results = reinterpret_cast<T*>(session.staging(1));
    if (step == 1) {
      if (plan.is_received_by(ctx().rank))
        copy_bytes(session.group(), plan.destination + done, results, count * sizeof(T));
      return;
    }
    const Range share = share_of(ctx().rank, count);
    if (share.count == 0) return;
    T* const to = casts ? results + share.first : plan.destination + done;
    const ThreadShare threads{session.group().thread_rank(), session.group().size()};
    if (reads)
      combine_into(threads, MemberVectors{ctx(), collected(done)}, to, share.count, plan.call.reduction);
    else
      combine_into(threads, CollectedVectors{collected(done), slot_bytes(), ctx().size}, to, share.count,
                   plan.call.reduction);
    if (casts) cast(reinterpret_cast<std::byte*>(to), share.count * sizeof(T));
  }

  /// Writes a result to all members that get it.
  BEELINE_HOST_DEVICE void cast(std::byte* result, std::size_t bytes) {
    session.group().sync();
    BEELINE_NO_UNROLL
    for (std::uint32_t k = 1; k < ctx().size; ++k)
      if (const std::uint32_t peer = peer_ahead(ctx(), k); plan.is_received_by(peer))
        stores.put(result, result, bytes, peer);
  }
};

/// Whether vectors are combined in parts: only if there is an element for each member (000, 6.8.4).
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE bool shares_work(const Context& ctx, const ReductionPlan<T>& plan,
                                                   Algorithm algorithm) {
  const bool by_parts = algorithm == Algorithm::alltoall_gather || algorithm == Algorithm::alltoall_allgather ||
                        algorithm == Algorithm::bulk;
  return by_parts && !plan.scatters() && plan.count >= ctx.size;
}

template <class T, class Group, class Stores>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_collected(Session<Group>& session, const ReductionPlan<T>& plan,
                                                          Stores& stores, Algorithm algorithm, Timeout timeout) {
  const bool shares = shares_work(session.context(), plan, algorithm);
  CollectSteps<T, Group, Stores> steps{
      session, plan, stores, algorithm == Algorithm::read, shares, shares || algorithm == Algorithm::gather_cast};
  return run_steps(session, steps, plan.count, timeout);
}

}  // namespace beeline::detail
