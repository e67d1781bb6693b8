// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reductions of vectors in ordinary memory that the members have mapped. Vectors may have any addresses: in the first
/// round each member sends each peer the addresses at which the peer reaches its vectors. If some member's vectors are
/// not mapped by all, it sends this to all members, and all vectors go through the channel's memory.

#include "beeline/collectives/impl/schedule/reduce_in_place.hpp"
#include "beeline/collectives/impl/schedule/two_shot.hpp"
#include "beeline/collectives/impl/vector_mappings.hpp"

namespace beeline::detail {

/// How other members access a member's vector directly: in its heap or by a mapping.
[[nodiscard]] BEELINE_HOST_DEVICE inline Transfer direct_transfer(const Context& ctx, const void* vector) {
  return place_in_slot(ctx, vector) == no_place ? Transfer::registered : Transfer::in_place;
}

/// The address exchange. Fills the table; `how` becomes staged unless all members have mapped all vectors.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status tell_mappings(Session<Group>& session, MappingTable& table,
                                                       const void* destination, const void* source, Timeout timeout,
                                                       Transfer& how) {
  bool complete = true;
  const auto tell = [&](std::uint32_t peer, std::uint32_t k) -> std::uint64_t {
    if (!table.mine.complete) return 0;
    return k == 0 ? reinterpret_cast<std::uintptr_t>(destination) + table.mine.destination[peer]
                  : reinterpret_cast<std::uintptr_t>(source) + table.mine.source[peer];
  };
  const auto hear = [&](std::uint32_t peer, std::uint32_t k, std::uint64_t theirs) {
    (k == 0 ? table.destinations : table.sources)[peer] = theirs;
    complete = complete && theirs != 0;
    return Status::ok;
  };
  const Status status = handshake(session, 2, timeout, tell, hear);
  if (status == Status::ok)
    how = session.group().any(!complete) ? Transfer::staged : direct_transfer(session.context(), source);
  return status;
}

/// One vector of each member, at `offset` bytes after the addresses of a table.
struct TableVectors {
  const std::uintptr_t* addresses;
  std::size_t offset;
  std::uint32_t count;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t members() const { return count; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* of(std::uint32_t member) const {
    return reinterpret_cast<std::byte*>(addresses[member] + offset);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uintptr_t bits() const {
    std::uintptr_t all = 0;
    for (std::uint32_t member = 0; member < count; ++member) all |= addresses[member] + offset;
    return all;
  }
};

/// The start of a part's result in the vectors of all members.
struct TableResults {
  const Context& ctx;
  TableVectors to;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uintptr_t bits() const { return to.bits(); }
  template <class T, class Word>
  BEELINE_INLINE BEELINE_HOST_DEVICE void store(std::size_t place, const Word& word) const {
    for (std::uint32_t step = 0; step < ctx.size; ++step)  // each member begins with a different member
      store_vector<T>(to.of(peer_ahead(ctx, step)) + place, word);
  }
};

/// All-reduce of any count.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce_mapped(Session<Group>& session,
                                                                         const AllreduceCall<T>& call,
                                                                         MappingTable& table, Timeout timeout) {
  const Context& ctx = session.context();
  const auto compare = [&](Transfer& how) {
    return tell_mappings(session, table, call.destination, call.source, timeout, how);
  };
  const auto results = [&](std::size_t first) {
    return TableResults{ctx, {table.destinations, first * sizeof(T), ctx.size}};
  };
  const auto reduce = [&](const AllreduceCall<T>& some, bool staged) {
    if (staged) return reduce_own_share(session, some);
    const Range mine = part_of(some.count, ctx.size, ctx.rank, elements_in_16<T>);
    const TableVectors from{table.sources, mine.first * sizeof(T), ctx.size};
    reduce_share(session, some, mine.count, from, results(mine.first));
  };
  return allreduce_in_two_shots(session, call, timeout, compare, results, reduce);
}

/// Reduce-scatter: each member reads its part of all vectors. Reduce: members combine their parts, and store the
/// results to the root.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_mapped(Session<Group>& session,
                                                                      const ReductionPlan<T>& plan, MappingTable& table,
                                                                      Timeout timeout) {
  if (plan.count == 0) return Status::ok;
  if (const Status status = session.begin(plan.call); status != Status::ok) return status;
  const Context& ctx = session.context();
  const auto compare = [&](Transfer& how) {  // a destination that no member reaches is announced, but not used
    const bool is_reached = plan.call.root == ctx.rank;
    return tell_mappings(session, table, is_reached ? plan.destination : plan.source, plan.source, timeout, how);
  };
  const Algorithm otherwise = plan.scatters() ? Algorithm::peer : Algorithm::alltoall_gather;
  const auto result = [&] { return reinterpret_cast<std::byte*>(table.destinations[plan.call.root]); };
  const auto combine = [&] {
    const Range mine = plan.scatters() ? Range{ctx.rank * plan.part_step, plan.count} : share_of_reducer(ctx, plan);
    if (mine.count == 0) return;
    T* const to = plan.scatters() ? plan.destination : reinterpret_cast<T*>(result()) + mine.first;
    const TableVectors from{table.sources, mine.first * sizeof(T), ctx.size};
    combine_into({session.group().thread_rank(), session.group().size()}, from, to, mine.count, plan.call.reduction);
  };
  return reduce_where_they_lie(session, plan, otherwise, timeout, compare, combine, result);
}

}  // namespace beeline::detail
