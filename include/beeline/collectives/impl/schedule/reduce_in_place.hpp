// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reduce and reduce-scatter in the protocol signal, with direct access to vectors: the first of two shots. Members
/// read parts of all vectors, combine them, and store the results to the members that get them.

#include "beeline/collectives/impl/handshake.hpp"
#include "beeline/collectives/impl/protocol/signal.hpp"
#include "beeline/collectives/impl/schedule/collected.hpp"
#include "beeline/collectives/impl/schedule/reduce_chain.hpp"

namespace beeline::detail {

/// Combines vectors by direct access if the members find that all reach them; otherwise by the algorithm `otherwise`.
///   compare  a handshake: sets its argument to staged, or to how the members reach each other's vectors
///   combine  does this member's work; reads the other members' sources, which may change when all members have done
///            theirs
///   result   returns the address of the root's destination for this member, if the call has a root
template <class T, class Group, class Compare, class Combine, class Result>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status
reduce_where_they_lie(Session<Group>& session, const ReductionPlan<T>& plan, Algorithm otherwise, Timeout timeout,
                      const Compare& compare, const Combine& combine, const Result& result) {
  constexpr std::uint32_t has_combined = ~std::uint32_t{0};
  if (session.stage() == 0) {
    Transfer how = Transfer::staged;
    if (const Status status = compare(how); status != Status::ok) return status;
    session.note(how);
    const bool can = how != Transfer::staged;
    if constexpr (executor == DeviceKind::gpu && std::is_floating_point_v<T>)
      if (can && reduces_along_chain(session, plan)) return reduce_along_chain(session, plan, result(), timeout);
    if (can) combine();
    session.set_stage(can ? has_combined : 1);  // all members have arrived, so the channel's memory is free
  }
  if (session.stage() != has_combined) {
    SignalStores<Group> stores{session.group(), session.context()};
    return reduce_collected(session, plan, stores, otherwise, timeout);
  }
  const Status status = session.barrier(Order::memory, timeout);
  if (status == Status::ok) session.set_stage(0);
  return status;
}

/// Each member reads its part of all vectors directly, if the vectors are symmetric.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_scatter_read(Session<Group>& session, const ReductionPlan<T>& plan,
                                                             Timeout timeout) {
  const auto compare = [&](Transfer& how) { return compare_alike(session, plan.source, plan.source, timeout, how); };
  return reduce_where_they_lie(
      session, plan, Algorithm::peer, timeout, compare,
      [&] {
        const T* mine = plan.source + session.context().rank * plan.part_step;
        combine_into({session.group().thread_rank(), session.group().size()},
                     MemberVectors{session.context(), reinterpret_cast<const std::byte*>(mine)}, plan.destination,
                     plan.count, plan.call.reduction);
      },
      [] { return static_cast<std::byte*>(nullptr); });
}

/// Whether the root combines: everything with two members; nothing with more members, whose other members combine.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool root_combines(const Context& ctx) { return ctx.size <= 2; }

/// The range that this member combines: with more than two members the root has no part.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Range share_of_reducer(const Context& ctx, const ReductionPlan<T>& plan) {
  if ((ctx.rank == plan.call.root) != root_combines(ctx)) return {0, 0};
  if (root_combines(ctx)) return {0, plan.count};
  const std::uint32_t index = ctx.rank < plan.call.root ? ctx.rank : ctx.rank - 1;
  return part_of(plan.count, ctx.size - 1, index, elements_in_16<T>);
}

/// Handshake: `how` becomes in_place if the sources are symmetric and, if other members store to it, the root's
/// destination is in its heap. All members receive the destination's offset.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status compare_sources(Session<Group>& session, const ReductionPlan<T>& plan,
                                                         Timeout timeout, Transfer& how) {
  const Context& ctx = session.context();
  const std::uint64_t from = place_in_slot(ctx, plan.source), to = place_in_slot(ctx, plan.destination);
  bool same = from != no_place;
  const auto tell = [&](std::uint32_t, std::uint32_t k) { return k == 0 ? from : to; };
  const auto hear = [&](std::uint32_t peer, std::uint32_t k, std::uint64_t theirs) {
    same = same && (k == 0 ? theirs == from : peer != plan.call.root || root_combines(ctx) || theirs != no_place);
    return Status::ok;
  };
  const Status status = handshake(session, 2, timeout, tell, hear);
  if (status == Status::ok) how = session.group().any(!same) ? Transfer::staged : Transfer::in_place;
  return status;
}

/// If the sources are symmetric, members read parts of all sources, and store the results to the root. The root's link
/// carries the vector once in each direction: with three or more members the root combines no part; with two members it
/// combines everything, since one member reads faster than two that read from each other.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_two_shot(Session<Group>& session, const ReductionPlan<T>& plan,
                                                         Timeout timeout) {
  const Context& ctx = session.context();
  const auto compare = [&](Transfer& how) { return compare_sources(session, plan, timeout, how); };
  const auto result = [&] {
    return ctx.rank == plan.call.root
               ? reinterpret_cast<std::byte*>(plan.destination)
               : ctx.translate(own_slot(ctx) + session.heard_word(plan.call.root, 1, 0), plan.call.root);
  };
  const auto combine = [&] {
    const Range mine = share_of_reducer(ctx, plan);
    if (mine.count == 0) return;
    std::byte* const to = result() + mine.first * sizeof(T);
    combine_vectors<T>({session.group().thread_rank(), session.group().size()},
                       MemberVectors{ctx, reinterpret_cast<const std::byte*>(plan.source + mine.first)}, to, mine.count,
                       plan.call.reduction,
                       [to](std::size_t place, const auto& word) { store_vector<T>(to + place, word); });
  };
  return reduce_where_they_lie(session, plan, Algorithm::alltoall_gather, timeout, compare, combine, result);
}

}  // namespace beeline::detail
