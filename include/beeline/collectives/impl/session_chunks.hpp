// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collectives in kernels of a team with members on several nodes, over pair links. In each round a member puts the
/// next chunk of each piece to its receiver, waits for the chunks that it gets, and stores or combines them; reductions
/// combine vectors in the order of ranks, so that all results have the same bits. All of this is out of line, so that
/// it takes no registers from calls by loads and stores.
///
///     put to the member after this one, .. to the member before it   stage counts them
///     wait for all chunks of the round
///     store or combine them, free their boxes                        done counts bytes
///
/// A time-out may end the call in the first two steps; the same call then continues there.

#include "beeline/collectives/impl/combine.hpp"
#include "beeline/collectives/impl/movement_handshake.hpp"
#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/collectives/impl/pair_links.hpp"
#include "beeline/collectives/impl/reduction_plan.hpp"
#include "beeline/collectives/session.hpp"
#include "beeline/device/impl/barrier_by_routes.hpp"

namespace beeline::detail {

/// A round of a call: the chunks of all pieces from byte `done` on.
struct ChunkRound {
  const PairLinks& links;
  const MovementPlan& plan;  ///< of a reduction: the vectors that members send
  std::size_t done;

  [[nodiscard]] BEELINE_HOST_DEVICE const Context& ctx() const { return links.context(); }
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t most() const { return links.channel().chunk_bytes(); }
  /// Whether a piece has a chunk in this round. In the first round each piece has one, even without bytes, so that each
  /// member compares its call with the calls of all others.
  template <class Byte>
  [[nodiscard]] BEELINE_HOST_DEVICE bool has_chunk(const Piece<Byte>& piece) const {
    return done == 0 || done < piece.bytes;
  }
  /// Whether no piece of this member has a chunk in a later round.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_last() const {
    std::size_t longest = 0;
    BEELINE_NO_UNROLL
    for (std::uint32_t peer = 0; peer < ctx().size; ++peer) {
      const std::size_t out = plan.outgoing(ctx(), peer).bytes, in = plan.incoming(ctx(), peer).bytes;
      longest = out > longest ? out : longest;
      longest = in > longest ? in : longest;
    }
    return done + most() >= longest;
  }
};

/// Begins a call, unless it continues after a time-out. One thread calls it, like the next functions.
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline Status begin_by_chunks(const PairLinks& links,
                                                                             const CallDescription& call) {
  PairState& state = *links.channel().state;
  if constexpr (executor == DeviceKind::host)
    if (DeviceAtomic<std::uint32_t>(state.is_busy).exchange(1, std::memory_order_acquire) != 0) {
      const CallWords other{state.packed, state.count}, mine{call.packed(), call.count};
      return refuse_call(links.context(), {CallDifference::session_in_use, links.context().rank, other, mine});
    }
  if (state.stage != 0) return Status::ok;
  state.enter(call);
  state.stage = 1;
  return links.check_taken();
}
/// Ends a call, or its part before a time-out.
BEELINE_HOST_DEVICE inline void end_by_chunks(const PairLinks& links, bool is_over) {
  PairState& state = *links.channel().state;
  if (is_over) state.stage = 0, state.done = 0;
  DeviceAtomic<std::uint32_t>(state.is_busy).store(0, std::memory_order_release);
}

/// Waits for the round's chunks from all members.
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline Status await_chunks(const ChunkRound& round, Timeout timeout) {
  const PairLinks& links = round.links;
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < round.ctx().size; ++peer) {
    const Piece<std::byte> piece = round.plan.incoming(round.ctx(), peer);
    if (peer == round.ctx().rank || !round.has_chunk(piece)) continue;
    Status status = links.await_chunk(round.ctx(), Operation::collective, peer, &links, timeout);
    if (status == Status::ok) status = links.check_call(peer, *links.arriving(peer));
    if (status == Status::ok)
      status = compare_lengths(round.ctx(), peer, told_sent, piece.bytes, links.arriving(peer)->total);
    if (status != Status::ok) return status;
  }
  return Status::ok;
}
/// Frees the boxes of the round's chunks.
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline Status end_round(const ChunkRound& round) {
  PairState& state = *round.links.channel().state;
  state.stage = 1, state.done = round.done + round.most();
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < round.ctx().size && status == Status::ok; ++peer)
    if (peer != round.ctx().rank && round.has_chunk(round.plan.incoming(round.ctx(), peer)))
      status = round.links.release(peer);
  return status;
}

/// Puts the round's chunks, then waits for those of other members. Every thread calls it.
template <class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status exchange_chunks(Group group, const ChunkRound& round,
                                                                      Timeout timeout) {
  const PairLinks& links = round.links;
  const Context& ctx = links.context();
  const bool is_first = group.thread_rank() == 0;
  PairState& state = *links.channel().state;
  BEELINE_NO_UNROLL
  for (std::uint32_t stage = state.stage; stage < ctx.size; ++stage) {
    const std::uint32_t peer = ctx.rank + stage < ctx.size ? ctx.rank + stage : ctx.rank + stage - ctx.size;
    const Piece<const std::byte> piece = round.plan.outgoing(ctx, peer);
    if (!round.has_chunk(piece)) continue;
    Status status =
        agree(group, is_first ? links.await_room(ctx, Operation::collective, peer, &links, timeout) : Status::ok);
    if (status != Status::ok) return status;
    const Piece<const std::byte> part = piece.part(round.done, round.most());
    copy_bytes(OutOfLine<Group>{group}, links.place_for(peer), part.at, part.bytes);
    group.sync();
    if (is_first) {
      state.stage = stage + 1;
      status = links.put(peer, {state.packed, state.count, piece.bytes, part.bytes, ctx.rank}, links.place_for(peer));
    }
    status = agree(group, status);
    if (status != Status::ok) return status;
  }
  return agree(group, is_first ? await_chunks(round, timeout) : Status::ok);
}

/// Carries out a call: `take(round)` stores or combines the chunks of a round. Every thread calls it.
template <class Group, class Take>
[[nodiscard]] BEELINE_HOST_DEVICE Status run_by_chunks(const Group& group, const PairLinks& links,
                                                       const MovementPlan& plan, Timeout timeout, const Take& take) {
  const bool is_first = group.thread_rank() == 0;
  group.sync();  // the rest of the group has written its part of the source
  Status status = agree(group, is_first ? begin_by_chunks(links, plan.call) : Status::ok);
  if (status != Status::ok) return status;
  for (bool is_over = false; !is_over && status == Status::ok;) {
    const ChunkRound round{links, plan, links.channel().state->done};
    is_over = round.is_last();
    status = exchange_chunks(group, round, timeout);
    if (status != Status::ok) break;
    take(round);
    group.sync();
    status = agree(group, is_first ? end_round(round) : Status::ok);
  }
  if (is_first) end_by_chunks(links, status == Status::ok);
  group.sync();
  return status;
}

/// Stores the chunks of a round in their destinations.
template <class Group>
struct StoreChunks {
  Group group;

  BEELINE_HOST_DEVICE void operator()(const ChunkRound& round) const {
    const Context& ctx = round.ctx();
    BEELINE_NO_UNROLL
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      const Piece<std::byte> part = round.plan.incoming(ctx, peer).part(round.done, round.most());
      const Piece<const std::byte> own = round.plan.outgoing(ctx, peer).part(round.done, round.most());
      const void* const from = peer == ctx.rank ? own.at : static_cast<const void*>(round.links.arriving(peer) + 1);
      const bool is_own_other = peer == ctx.rank && own.bytes != part.bytes;
      if (part.bytes != 0 && from != part.at && !is_own_other)
        copy_bytes(OutOfLine<Group>{group}, part.at, from, part.bytes);
    }
  }
};

/// The collectives that move data. Every thread calls it, like the next functions.
template <class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status movement_by_chunks(Group group, const Context& ctx,
                                                                         const PairChannel& channel,
                                                                         const MovementPlan& plan, Timeout timeout) {
  return run_by_chunks(group, PairLinks(ctx, channel), plan, timeout, StoreChunks<Group>{group});
}

/// One vector of each member: this member's, and those in the boxes of the arrived chunks.
struct ArrivedVectors {
  const PairLinks& links;
  const void* own;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t members() const { return links.context().size; }
  [[nodiscard]] BEELINE_HOST_DEVICE const std::byte* of(std::uint32_t member) const {
    return static_cast<const std::byte*>(member == links.context().rank ? own : links.arriving(member) + 1);
  }
};

/// The vectors that the members of a reduction send.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE MovementPlan sends_of(const ReductionPlan<T>& plan) {
  MovementPlan sends = plan_of(plan.call, nullptr, plan.source, plan.count * sizeof(T));
  sends.sender = no_peer, sends.receiver = plan.call.root;
  sends.send_step = plan.part_step * sizeof(T);
  return sends;
}

/// Combines the chunks of a round.
template <class T, class Group>
struct CombineChunks {
  Group group;
  const ReductionPlan<T>& plan;

  BEELINE_HOST_DEVICE void operator()(const ChunkRound& round) const {
    const std::uint32_t rank = round.ctx().rank;
    if (!plan.is_received_by(rank)) return;
    const std::size_t first = round.done / sizeof(T), rest = plan.count - first, most = round.most() / sizeof(T);
    const ArrivedVectors vectors{round.links, plan.source + rank * plan.part_step + first};
    T* const to = plan.destination + first;
    const auto store = [to](std::size_t place, const auto& word) {
      store_vector<T>(reinterpret_cast<std::byte*>(to) + place, word);
    };
    const ThreadShare threads{group.thread_rank(), group.size()};
    const std::size_t count = rest < most ? rest : most;
    if constexpr (executor == DeviceKind::host)
      combine_on_host<T>(threads, vectors, count, plan.call.reduction, store);
    else
      combine_range<T, T, 1>(threads, vectors, {0, count}, plan.call.reduction, store);
  }
};

/// All-reduce, reduce and reduce-scatter.
template <class T, class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status reduction_by_chunks(Group group, const Context& ctx,
                                                                          const PairChannel& channel,
                                                                          const ReductionPlan<T>& plan,
                                                                          Timeout timeout) {
  return run_by_chunks(group, PairLinks(ctx, channel), sends_of(plan), timeout, CombineChunks<T, Group>{group, plan});
}

/// Puts a chunk without data to every other member; then waits for their chunks, and frees the boxes.
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline Status exchange_heads(const PairLinks& links, Timeout timeout) {
  const Context& ctx = links.context();
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (; links.channel().state->stage < ctx.size; ++links.channel().state->stage) {
    const PairState& state = *links.channel().state;
    const std::uint32_t peer = (ctx.rank + state.stage) % ctx.size;
    status = links.await_room(ctx, Operation::collective, peer, &links, timeout);
    if (status == Status::ok) status = links.put(peer, {state.packed, state.count, 0, 0, ctx.rank}, nullptr);
    if (status != Status::ok) return status;
  }
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
    if (peer == ctx.rank) continue;
    status = links.await_chunk(ctx, Operation::collective, peer, &links, timeout);
    if (status == Status::ok) status = links.check_call(peer, *links.arriving(peer));
    if (status != Status::ok) return status;
  }
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < ctx.size && status == Status::ok; ++peer)
    if (peer != ctx.rank) status = links.release(peer);
  return status;
}
/// One thread's part of `barrier_by_chunks`, in few registers.
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline Status meet_by_chunks(const Context& ctx,
                                                                            const PairChannel& channel,
                                                                            const CallDescription& call,
                                                                            Timeout timeout) {
  const PairLinks links(ctx, channel);
  Status status = begin_by_chunks(links, call);
  if (status != Status::ok) return status;
  status = exchange_heads(links, timeout);
  end_by_chunks(links, status == Status::ok);
  return status;
}
/// A barrier, or a call without elements. With `Order::memory` it waits until the engine has completed what this rank's
/// threads have posted before to any queue.
template <class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status barrier_by_chunks(Group group, const Context& ctx,
                                                                        const PairChannel& channel,
                                                                        const CallDescription& call, Order order,
                                                                        Timeout timeout) {
  group.sync();  // the rest of the group has done its work
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    if (order == Order::memory && channel.state->stage == 0) status = drain_all_queues(ctx, timeout);
    if (status == Status::ok) status = meet_by_chunks(ctx, channel, call, timeout);
  }
  return agree(group, status);
}

/// A session's channel, and its slice of a call.
struct AcrossSession {
  const Context& ctx;
  const PairChannel& channel;
  std::uint32_t slice, slices;
};
/// The slice of a whole call of any count.
template <class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status move_across(Group group, AcrossSession session,
                                                                  const MovementPlan& plan, Timeout timeout) {
  const auto& [ctx, channel, slice, slices] = session;
  if (!plan.varies() && plan.bytes == 0)
    return barrier_by_chunks(group, ctx, channel, plan.call, Order::memory, timeout);
  const MovementPlan mine = plan.slice(slice, slices);
  if (!plan.varies() && mine.bytes == 0) return Status::ok;  // fewer bytes than slices
  return movement_by_chunks(group, ctx, channel, mine, timeout);
}
template <class Group, class T>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status move_across(Group group, AcrossSession session,
                                                                  const ReductionPlan<T>& plan, Timeout timeout) {
  const auto& [ctx, channel, slice, slices] = session;
  if (plan.count == 0) return barrier_by_chunks(group, ctx, channel, plan.call, Order::memory, timeout);
  const ReductionPlan<T> mine = plan.slice(slice, slices);
  return mine.count == 0 ? Status::ok : reduction_by_chunks(group, ctx, channel, mine, timeout);
}

/// Makes a call of a session in a team with members on several nodes, which has no choice of algorithm.
///   plan  a MovementPlan or a ReductionPlan
template <class Group, class Plan>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status call_across(const Session<Group>& session, const Plan& plan,
                                                                    const SessionCall& how) {
  if (session.is_refused() || how.algorithm != Algorithm::automatic) return Status::invalid_argument;
  return move_across(
      session.group(),
      AcrossSession{session.context(), session.pair_channels()[session.index()], session.slice(), session.slices()},
      plan, how.timeout);
}

}  // namespace beeline::detail
