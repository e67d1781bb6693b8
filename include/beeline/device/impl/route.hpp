// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations on members of a team that a rank does not reach by loads and stores (docs/design.md, Routes). All of it
/// is out of the way of the others: an operation calls one of the functions here that are marked cold, and only where
/// its context has routes. They call nothing themselves, so that they cost no stack and few registers, and take values,
/// since what they took by reference would have to lie in memory.

#include <cstdint>

#include "beeline/core/command.hpp"
#include "beeline/device/impl/caller_check.hpp"

namespace beeline {

/// An ordered stream of operations towards each peer; 0 to `max_queues` - 1. Where an engine carries them, order,
/// `flush` and `quiet` are those of a queue; loads and stores by the calling threads keep the order of all queues.
struct Queue {
  std::uint32_t index = 0;
};

namespace detail {

/// What an operation wants of a peer: few registers, since they are held while it waits for a place in the ring.
struct Request {
  Operation operation;
  Verb verb;
  std::uint8_t width : 4;  ///< bytes of a word; 0: rows
  std::uint8_t is_signed : 1;
  std::uint32_t peer;
};
static_assert(sizeof(Request) == 8);

/// Rows of bytes in this rank's memory, and their distances at both ends.
struct LocalRows {
  const void* local;
  std::size_t rows, row_bytes, remote_stride, local_stride;
};

/// Where an operation goes on, if it does.
struct Passage {
  std::uint32_t place;  ///< of the peer in the context, for loads and stores; `no_peer`: the operation is over
  Status status;        ///< then how it ended
};

/// The same with what a word held.
struct Fetched {
  Passage passage;
  std::uint64_t value;
};

[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t ring_of(Queue queue) { return queue.index % command_rings; }

/// Refuses an operation on a peer that loads and stores do not reach, nor, unless it takes them, an engine.
BEELINE_HOST_DEVICE BEELINE_INLINE Status refuse_route(const Context& ctx, Operation operation, std::uint32_t peer) {
  const CallFault fault = ctx.way_to(peer).way == Way::engine ? CallFault::by_engine_only : CallFault::no_route;
  return record_refusal(ctx, operation, peer, {fault, 0, ctx.world_rank(peer)}, Status::unreachable);
}

/// A wait for an engine, and the place in a record for what it waited for.
struct EngineWait {
  const std::uint64_t* word;
  std::uint64_t least;
};

/// Polls until `*word >= least`, acquiring; deadline or aborted else, which its caller records.
///   heeds_abort  whether an abort of the team ends it
BEELINE_HOST_DEVICE BEELINE_INLINE Status await_engine(const Context& ctx, EngineWait wait, bool heeds_abort) {
  const SystemAtomic<std::uint64_t> word(const_cast<std::uint64_t&>(*wait.word));
  std::uint64_t start = 0;
  BEELINE_NO_UNROLL
  for (std::uint32_t poll = 0;; ++poll) {
    if (word.load(cuda::memory_order_acquire) >= wait.least) return Status::ok;
    machine::back_off(poll, ctx.polling);
    if (poll % polls_per_look != 0 && !machine::backs_off(poll, ctx.polling)) continue;
    if (heeds_abort && read_abort_word(ctx) != 0) return Status::aborted;
    const std::uint64_t now = machine::clock_ns();
    if (start == 0) start = now;
    if (now - start >= ctx.deadline_ns) return Status::deadline;
  }
}

/// Records a wait for an engine that has ended without success: its sequence is the count of commands that it was for.
BEELINE_HOST_DEVICE BEELINE_INLINE Status give_up_on_engine(const Context& ctx, Request request, EngineWait wait,
                                                            Status status) {
  const std::uint64_t observed =
      SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(*wait.word)).load(cuda::memory_order_relaxed);
  record_wait(ctx, Awaited{request.operation, request.peer, wait.least, wait.least}, observed,
              status == Status::deadline ? ctx.deadline_ns : 0, status);
  if (status == Status::deadline) raise_abort(ctx, ctx.own_world_rank);
  return status;
}

/// A command's slot, once it is free: back-pressure. Whoever has a ticket uses it, or nothing behind it would be
/// served: an abort does not end this wait, for which the engine alone is needed, only the deadline does. Where a ring
/// is full and the team is aborted, no ticket is taken: a stopped engine costs one deadline, not one for each call.
/// `failed`: the wait that did.
BEELINE_HOST_DEVICE inline Status claim_command(const Context& ctx, std::uint32_t ring, std::uint64_t& ticket,
                                                EngineWait& failed) {
  CommandTickets& tickets = ctx.routes->tickets[ring];
  const std::uint64_t* const taken = &ctx.routes->rings[ring].taken.value;
  const SystemAtomic<std::uint64_t> next(tickets.next);
  const std::uint64_t first = next.load(cuda::memory_order_relaxed);
  failed = {taken, first + 1 - command_ring_depth};
  if (first >= command_ring_depth && read_abort_word(ctx) != 0 &&
      SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(*taken)).load(cuda::memory_order_relaxed) < failed.least)
    return Status::aborted;
  ticket = next.fetch_add(1, cuda::memory_order_relaxed);
  if (ticket < command_ring_depth) return Status::ok;
  failed = {taken, ticket + 1 - command_ring_depth};
  if (const Status status = await_engine(ctx, failed, false); status != Status::ok) return status;
  failed = {&tickets.freed[ticket % command_ring_depth], ticket / command_ring_depth};
  return await_engine(ctx, failed, false);
}

/// Lets the slot of a command go, whose answer, if any, has been read.
BEELINE_HOST_DEVICE inline void free_command(const Context& ctx, std::uint32_t ring, std::uint64_t ticket) {
  SystemAtomic<std::uint64_t>(ctx.routes->tickets[ring].freed[ticket % command_ring_depth])
      .store(ticket / command_ring_depth + 1, cuda::memory_order_release);
}

/// Does a command after everything that this thread, and those that it has synchronized with, did before: posts it, and
/// if it `answers`, waits for the engine, and sets `value` to what the word held.
BEELINE_HOST_DEVICE inline Status command_engine(const Context& ctx, Request request, std::uint32_t ring,
                                                 const void* remote, const LocalRows& rows, bool answers,
                                                 std::uint64_t& value) {
  std::uint64_t ticket = 0;
  EngineWait wait{};
  Status status = claim_command(ctx, ring, ticket, wait);
  if (status == Status::ok) {
    Command& command = ctx.routes->rings[ring].commands[ticket % command_ring_depth];
    command.verb = request.verb;
    command.width = request.width;
    command.is_signed = request.is_signed;
    command.answers = answers;
    command.peer = ctx.routes->members[request.peer].world_rank;
    command.remote = ctx.offset_in_slot(remote);
    command.local = reinterpret_cast<std::uintptr_t>(rows.local);
    command.rows = rows.rows;
    command.row_bytes = rows.row_bytes;
    command.remote_stride = rows.remote_stride;
    command.local_stride = rows.local_stride;
    SystemAtomic<std::uint64_t>(command.sequence).store(ticket + 1, cuda::memory_order_release);
    if (answers) {
      const Answer& answer = ctx.routes->rings[ring].answers[ticket % command_ring_depth];
      wait = {&answer.sequence, ticket + 1};
      status = await_engine(ctx, wait, true);
      value = answer.value;
    }
    free_command(ctx, ring, ticket);
  }
  return status == Status::ok ? status : give_up_on_engine(ctx, request, wait, status);
}

/// Makes the leader's status that of the group. Also a `group.sync()`.
template <class Group>
BEELINE_HOST_DEVICE Status agree_on_engine(const Group& group, Status mine) {
  if (group.any(mine == Status::deadline)) return Status::deadline;
  return group.any(mine == Status::aborted) ? Status::aborted : Status::ok;
}

/// Whether an operation is for an engine to do; else `passage` says how it goes on. Every thread of a group calls it.
BEELINE_HOST_DEVICE inline bool is_for_engine(const Context& ctx, Request request, bool leads, Passage& passage) {
  const WayToPeer to = ctx.way_to(request.peer);
  if (to.way == Way::engine) return true;
  passage = {to.place, Status::ok};
  if (to.way == Way::refused)
    passage = {no_peer, leads ? refuse_route(ctx, request.operation, request.peer) : Status::unreachable};
  return false;
}

/// Puts or gets rows; a `get` until they have come. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Passage move_rows(const Group& group, const Context& ctx, Request request, Queue queue,
                                      const void* remote, const LocalRows& rows) {
  const bool leads = group.thread_rank() == 0;
  Passage passage{};
  if (!is_for_engine(ctx, request, leads, passage)) return passage;
  group.sync();
  Status status = Status::ok;
  std::uint64_t no_value = 0;
  if (leads && rows.rows != 0 && rows.row_bytes != 0)
    status = command_engine(ctx, request, ring_of(queue), remote, rows, request.verb == Verb::get, no_value);
  return {no_peer, agree_on_engine(group, status)};
}

template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Passage move_rows_by_route(Group group, const Context& ctx, Request request,
                                                            Queue queue, const void* remote, LocalRows rows) {
  return move_rows(group, ctx, request, queue, remote, rows);
}

/// The same with one row.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Passage move_by_route(Group group, const Context& ctx, Request request, Queue queue,
                                                       const void* remote, const void* local, std::size_t bytes) {
  return move_rows(group, ctx, request, queue, remote, {local, 1, bytes, 0, 0});
}

/// Changes a word by one thread of the group, after everything that the group did before. Every thread calls it.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Passage change_by_route(Group group, const Context& ctx, Request request, Queue queue,
                                                         const void* remote, std::uint64_t operand) {
  const bool leads = group.thread_rank() == 0;
  Passage passage{};
  if (!is_for_engine(ctx, request, leads, passage)) return passage;
  group.sync();
  Status status = Status::ok;
  const LocalRows word{reinterpret_cast<const void*>(operand), 0, 0, 0, 0};
  std::uint64_t no_value = 0;
  if (leads) status = command_engine(ctx, request, ring_of(queue), remote, word, false, no_value);
  return {no_peer, agree_on_engine(group, status)};
}

/// Changes a word, and gives what it held. One thread calls it.
///   expected  of compare_swap
BEELINE_COLD BEELINE_HOST_DEVICE inline Fetched fetch_by_route(const Context& ctx, Request request, const void* remote,
                                                               std::uint64_t operand, std::uint64_t expected) {
  constexpr std::uint32_t ring = 0;  // of the default queue
  Fetched fetched{};
  if (!is_for_engine(ctx, request, true, fetched.passage)) return fetched;
  const LocalRows word{reinterpret_cast<const void*>(operand), expected, 0, 0, 0};
  fetched.passage = {no_peer, command_engine(ctx, request, ring, remote, word, true, fetched.value)};
  return fetched;
}

/// Until an engine has done what was posted to a queue before.
///   operation  quiet: it is in place; flush: its sources may be reused
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status drain_route(Group group, const Context& ctx, Operation operation, Queue queue) {
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    const CommandRing& ring = ctx.routes->rings[ring_of(queue)];
    const SystemAtomic<std::uint64_t> posted(ctx.routes->tickets[ring_of(queue)].next);
    const EngineWait wait{operation == Operation::quiet ? &ring.completed.value : &ring.reusable.value,
                          posted.load(cuda::memory_order_relaxed)};
    status = await_engine(ctx, wait, true);
    if (status != Status::ok) status = give_up_on_engine(ctx, {operation, Verb::put, 0, 0, no_peer}, wait, status);
  }
  return agree_on_engine(group, status);
}

/// The place of a peer whose memory the caller is to load and store, for what has no status to return: stops at one
/// that is reached otherwise, or not at all.
template <bool>
BEELINE_HOST_DEVICE std::uint32_t place_for_access(const Context& ctx, Operation operation, std::uint32_t peer) {
  const WayToPeer to = ctx.way_to(peer);
  if (to.way == Way::direct) return to.place;
  static_cast<void>(refuse_route(ctx, operation, peer));
  end_call(ctx, operation,
           {to.way == Way::engine ? CallFault::by_engine_only : CallFault::no_route, 0, ctx.world_rank(peer)},
           Status::unreachable);
  return 0;
}

/// `ok`, or `unreachable` after one thread of the group has refused what takes loads and stores of every member.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status check_all_direct(Group group, const Context& ctx, Operation operation) {
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
    if (ctx.way_to(peer).way != Way::direct)
      return group.thread_rank() == 0 ? refuse_route(ctx, operation, peer) : Status::unreachable;
  return Status::ok;
}

}  // namespace detail

}  // namespace beeline
