// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reduce, reduce-scatter, and all-reduce by the algorithms of seed 000.

#include "beeline/collectives/impl/call_check.hpp"
#include "beeline/collectives/impl/schedule/reduce_packets.hpp"
#include "beeline/collectives/impl/schedule/staged.hpp"
#include "beeline/collectives/session.hpp"
#include "beeline/selection/preferences.hpp"

namespace beeline::detail {

/// Combines vectors where they lie, if the members find that they can; otherwise parts go to their owners.
///   compare  a handshake that sets its argument to whether they can
///   combine  what this member then has to do; it reads the others' sources, which may change when all have done so
template <class T, class Group, class Compare, class Combine>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_where_they_lie(Session<Group>& session,
                                                                              const ReductionPlan<T>& plan,
                                                                              Algorithm otherwise, Timeout timeout,
                                                                              const Compare& compare,
                                                                              const Combine& combine) {
  constexpr std::uint32_t has_combined = ~std::uint32_t{0};
  if (session.stage() == 0) {
    bool can = false;
    if (const Status status = compare(can); status != Status::ok) return status;
    session.note(can ? Transfer::in_place : Transfer::staged);
    if (can) combine();
    session.set_stage(can ? has_combined : 1);  // the others have come: nobody uses the channel's memory otherwise
  }
  if (session.stage() != has_combined) {
    StoreMover<Group> mover{session.group(), session.context()};
    return reduce_collected(session, plan, mover, otherwise, timeout);
  }
  const Status status = session.barrier(Order::memory, timeout);
  if (status == Status::ok) session.set_stage(0);
  return status;
}

/// Each reads its part of all vectors where they are, if they lie alike.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_scatter_read(Session<Group>& session, const ReductionPlan<T>& plan,
                                                             Timeout timeout) {
  const auto compare = [&](bool& symmetric) {
    return compare_places(session, plan.source, plan.source, timeout, symmetric);
  };
  return reduce_where_they_lie(session, plan, Algorithm::peer, timeout, compare, [&] {
    const T* mine = plan.source + session.context().rank * plan.part_step;
    combine_into({session.group().thread_rank(), session.group().size()},
                 MemberVectors{session.context(), reinterpret_cast<const std::byte*>(mine)}, plan.destination,
                 plan.count, plan.reduction);
  });
}

/// Of two members the root combines all, of more the others.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool root_combines(const Context& ctx) { return ctx.size <= 2; }

/// Whether the sources lie alike, and, where others store to it, the root's destination in its heap, whose place all
/// hear.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status compare_sources(Session<Group>& session, const ReductionPlan<T>& plan,
                                                         Timeout timeout, bool& symmetric) {
  const Context& ctx = session.context();
  const std::uint64_t from = place_in_slot(ctx, plan.source), to = place_in_slot(ctx, plan.destination);
  bool same = from != no_place;
  const auto tell = [&](std::uint32_t, std::uint32_t k) { return k == 0 ? from : to; };
  const auto hear = [&](std::uint32_t peer, std::uint32_t k, std::uint64_t theirs) {
    same = same && (k == 0 ? theirs == from : peer != plan.root || root_combines(ctx) || theirs != no_place);
    return Status::ok;
  };
  const Status status = handshake(session, 2, timeout, tell, hear);
  if (status == Status::ok) symmetric = !session.group().any(!same);
  return status;
}

/// If the sources lie alike, members read parts of all of them, and store what they make of them to the root. Its link
/// carries the vector once each way: of three or more members the root has no part; of two it has all of it, since one
/// reads faster than two do from each other.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_two_shot(Session<Group>& session, const ReductionPlan<T>& plan,
                                                         Timeout timeout) {
  const Context& ctx = session.context();
  const auto compare = [&](bool& symmetric) { return compare_sources(session, plan, timeout, symmetric); };
  return reduce_where_they_lie(session, plan, Algorithm::alltoall_gather, timeout, compare, [&] {
    if ((ctx.rank == plan.root) != root_combines(ctx)) return;
    const std::uint32_t index = ctx.rank < plan.root ? ctx.rank : ctx.rank - 1;
    const Range mine =
        root_combines(ctx) ? Range{0, plan.count} : part_of(plan.count, ctx.size - 1, index, elements_in_16<T>);
    std::byte* const result = root_combines(ctx)
                                  ? reinterpret_cast<std::byte*>(plan.destination)
                                  : ctx.translate(own_slot(ctx) + session.heard_word(plan.root, 1, 0), plan.root);
    std::byte* const to = result + mine.first * sizeof(T);
    combine_vectors<T>({session.group().thread_rank(), session.group().size()},
                       MemberVectors{ctx, reinterpret_cast<const std::byte*>(plan.source + mine.first)}, to, mine.count,
                       plan.reduction,
                       [to](std::size_t place, const auto& word) { store_vector<T>(to + place, word); });
  });
}

/// Whether kernels have one of the operations that reduce by the algorithm.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool kernels_have(Operation operation, Algorithm algorithm) {
  constexpr std::uint32_t of_reduce = algorithms_of(Operation::reduce, Control::device),
                          of_allreduce = algorithms_of(Operation::allreduce, Control::device),
                          of_reduce_scatter = algorithms_of(Operation::reduce_scatter, Control::device);
  const std::uint32_t all = operation == Operation::reduce      ? of_reduce
                            : operation == Operation::allreduce ? of_allreduce
                                                                : of_reduce_scatter;
  const auto number = static_cast<std::uint32_t>(algorithm);
  return number < algorithms && (all >> number & 1u) != 0;
}

/// A reduction by name. Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that it does not
/// have.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_by(Session<Group>& session, const ReductionPlan<T>& plan,
                                                                  const SessionCall& how) {
  const Context& ctx = session.context();
  if (plan.count == 0) return Status::ok;
  if (!kernels_have(plan.operation(), how.algorithm)) return Status::invalid_argument;
  if (how.algorithm == Algorithm::packets) return reduce_packets<LL>(session, plan, how.timeout);
  if (ctx.mixed) return Status::invalid_argument;
  if constexpr (!std::is_same_v<Group, Thread> && !std::is_same_v<Group, Warp>)
    if (how.algorithm == Algorithm::bulk && (how.buffer != nullptr || executor == DeviceKind::host)) {
      BulkMover<Group> mover{{session.group(), ctx, how.buffer}};
      return reduce_collected(session, plan, mover, how.algorithm, how.timeout);
    }
  if (how.algorithm == Algorithm::bulk) return Status::invalid_argument;
  if (how.algorithm == Algorithm::read && plan.scatters) return reduce_scatter_read(session, plan, how.timeout);
  if (how.algorithm == Algorithm::two_shot) return reduce_two_shot(session, plan, how.timeout);
  StoreMover<Group> mover{session.group(), ctx};
  if (how.algorithm == Algorithm::tree && ctx.size > 1) return reduce_by_tree(session, plan, mover, how.timeout);
  return reduce_collected(session, plan, mover, how.algorithm, how.timeout);
}

template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_in_session(Session<Group>& session,
                                                                          const ReductionPlan<T>& plan,
                                                                          SessionCall how) {
  const CallSignature call{.operation = plan.operation(),
                           .type = ElementTraits<T>::type,
                           .reduction = plan.reduction,
                           .algorithm = how.algorithm,
                           .root = plan.root,
                           .slices = plan.slices,
                           .count = plan.count};
  if (const Status status = compare_calls(session, call, how.timeout); status != Status::ok) return status;
  if (how.algorithm == Algorithm::automatic)
    how.algorithm = plan.scatters
                        ? choose_in_kernel<Operation::reduce_scatter>(session.context(), plan.count * sizeof(T))
                        : choose_in_kernel<Operation::reduce>(session.context(), plan.count * sizeof(T));
  const Status status = reduce_by(session, plan, how);
  if (status == Status::ok) session.set_checked(false);
  return status;
}

/// The session's slice.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_slice(Session<Group>& session,
                                                                     const ReductionPlan<T>& plan,
                                                                     const SessionCall& how) {
  if (!session.exists()) return Status::invalid_argument;
  return reduce_in_session(session, plan.slice(session.slice(), session.slices()), how);
}

}  // namespace beeline::detail
