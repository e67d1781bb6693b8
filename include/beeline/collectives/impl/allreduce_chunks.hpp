// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduces and barriers in kernels of a team with members on several nodes. In each round every member puts a chunk
/// to every other member, by pair links, and combines all members' chunks in the order of ranks, so that all get the
/// same bits. All of it is out of line, so that it takes no registers of calls by loads and stores, with arguments by
/// value: see packets.hpp.

#include "beeline/collectives/impl/combine.hpp"
#include "beeline/collectives/impl/pair_links.hpp"
#include "beeline/collectives/impl/schedule/pushed.hpp"
#include "beeline/device/impl/barrier_by_routes.hpp"

namespace beeline::detail {

/// One vector of each member: this member's, and those in the boxes of the arrived chunks.
struct ArrivedVectors {
  const PairLinks& links;
  const void* own;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t members() const { return links.context().size; }
  [[nodiscard]] BEELINE_HOST_DEVICE const std::byte* of(std::uint32_t member) const {
    return static_cast<const std::byte*>(member == links.context().rank ? own : links.arriving(member) + 1);
  }
};

/// Begins a call, unless it continues after a time-out. One thread calls it, like the next functions.
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline Status begin_by_chunks(const PairLinks& links,
                                                                             const CallDescription& call) {
  PairState& state = *links.channel().state;
  if constexpr (executor == DeviceKind::host)
    if (DeviceAtomic<std::uint32_t>(state.is_busy).exchange(1, std::memory_order_acquire) != 0) {
      const std::uint32_t own = links.context().rank;
      return refuse_call(
          links.context(),
          {CallDifference::session_in_use, own, {state.packed, state.count}, {call.packed(), call.count}});
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

[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline Status await_chunks(const PairLinks& links, Timeout timeout) {
  const Context& ctx = links.context();
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
    if (peer == ctx.rank) continue;
    Status status = links.await_chunk(ctx, Operation::collective, peer, &links, timeout);
    if (status == Status::ok) status = links.check_call(peer, *links.arriving(peer));
    if (status != Status::ok) return status;
  }
  return Status::ok;
}
/// Frees the boxes of a round's chunks, of which the last one in the vector is at element `done`.
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline Status end_round_of_chunks(const PairLinks& links,
                                                                                 std::uint64_t done) {
  const Context& ctx = links.context();
  links.channel().state->stage = 1, links.channel().state->done = done;
  Status status = Status::ok;
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < ctx.size && status == Status::ok; ++peer)
    if (peer != ctx.rank) status = links.release(peer);
  return status;
}

/// Puts a round's chunk to every other member, then waits for theirs. Every thread calls it.
template <class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status exchange_chunks(Group group, const PairLinks& links,
                                                                      const void* source, std::size_t bytes,
                                                                      Timeout timeout) {
  const Context& ctx = links.context();
  const bool is_first = group.thread_rank() == 0;
  PairState& state = *links.channel().state;
  BEELINE_NO_UNROLL
  for (std::uint32_t stage = state.stage; stage < ctx.size; ++stage) {
    const std::uint32_t peer = ctx.rank + stage < ctx.size ? ctx.rank + stage : ctx.rank + stage - ctx.size;
    Status status =
        agree(group, is_first ? links.await_room(ctx, Operation::collective, peer, &links, timeout) : Status::ok);
    if (status != Status::ok) return status;
    copy_bytes(OutOfLine<Group>{group}, links.place_for(peer), source, bytes);
    group.sync();
    if (is_first) {
      state.stage = stage + 1;
      status = links.put(peer, {state.packed, state.count, bytes, bytes, ctx.rank}, links.place_for(peer));
    }
    status = agree(group, status);
    if (status != Status::ok) return status;
  }
  return agree(group, is_first ? await_chunks(links, timeout) : Status::ok);
}

template <class T, class Group>
BEELINE_HOST_DEVICE void combine_chunks(const Group& group, const ArrivedVectors& from, T* to, std::size_t count,
                                        Reduction reduction) {
  const ThreadShare threads{group.thread_rank(), group.size()};
  const auto store = [to](std::size_t place, const auto& word) {
    store_vector<T>(reinterpret_cast<std::byte*>(to) + place, word);
  };
  if constexpr (executor == DeviceKind::host)
    combine_on_host<T>(threads, from, count, reduction, store);
  else
    combine_range<T, T, 1>(threads, from, {0, count}, reduction, store);
}

/// The rounds of an all-reduce that has begun. Every thread calls it.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_by_chunks(const Group& group, const PairLinks& links,
                                                          const AllreduceCall<T>& own, Timeout timeout) {
  const std::size_t most = links.channel().chunk_bytes() / sizeof(T);
  std::size_t done = links.channel().state->done;
  do {
    const std::size_t count = own.count - done < most ? own.count - done : most;
    Status status = exchange_chunks(group, links, own.source + done, count * sizeof(T), timeout);
    if (status != Status::ok) return status;
    combine_chunks(group, {links, own.source + done}, own.destination + done, count, own.call.reduction);
    done += count;
    group.sync();
    status = agree(group, group.thread_rank() == 0 ? end_round_of_chunks(links, done) : Status::ok);
    if (status != Status::ok) return status;
  } while (done < own.count);
  return Status::ok;
}

/// The all-reduce of a session of `channel`; see `allreduce`. Every thread calls it.
template <class T, class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status allreduce_by_chunks(Group group, const Context& ctx,
                                                                          const PairChannel& channel,
                                                                          AllreduceCall<T> call, Timeout timeout) {
  const PairLinks links(ctx, channel);
  const AllreduceCall<T> own = call.own();
  if (own.count == 0) return Status::ok;  // fewer elements than slices
  const bool is_first = group.thread_rank() == 0;
  group.sync();  // the rest of the group has written its part of the source
  Status status = agree(group, is_first ? begin_by_chunks(links, call.call) : Status::ok);
  if (status != Status::ok) return status;
  status = reduce_by_chunks(group, links, own, timeout);
  if (is_first) end_by_chunks(links, status == Status::ok);
  group.sync();
  return status;
}

/// One thread's part of `meet_by_chunks`.
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline Status meet_alone(const Context& ctx, const PairChannel& channel,
                                                                        const CallDescription& call, Order order,
                                                                        Timeout timeout) {
  const PairLinks links(ctx, channel);
  Status status = Status::ok;
  if (order == Order::memory && channel.state->stage == 0) status = drain_all_queues(ctx, timeout);
  if (status == Status::ok) status = begin_by_chunks(links, call);
  if (status != Status::ok) return status;
  status = exchange_chunks(Thread{}, links, nullptr, 0, timeout);
  if (status == Status::ok) status = end_round_of_chunks(links, 0);
  end_by_chunks(links, status == Status::ok);
  return status;
}
/// A barrier of a session of `channel`; see barrier.hpp. With `Order::memory` it waits until the engine has completed
/// what this rank's threads have posted before to any queue. Every thread calls it.
template <class Group>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status meet_by_chunks(Group group, const Context& ctx,
                                                                     const PairChannel& channel, CallDescription call,
                                                                     Order order, Timeout timeout) {
  group.sync();  // the rest of the group has done its work
  return agree(group, group.thread_rank() == 0 ? meet_alone(ctx, channel, call, order, timeout) : Status::ok);
}

}  // namespace beeline::detail
