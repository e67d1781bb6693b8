// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations on members of a team that a rank does not reach by loads and stores (docs/design.md, Routes). All of it
/// is out of the way of the others: see `pass` (access.hpp). What is rare here is out of line once more: the registers
/// of a kernel are those of its deepest call.

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
  std::uint8_t answers : 1;  ///< the poster waits until it is done, for the word's old value or a `get`'s bytes
  std::uint32_t peer;
};
static_assert(sizeof(Request) == 8);

/// A put, or a get, of rows.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr Request move_request(bool puts, std::uint32_t peer) {
  return puts ? Request{Operation::put, Verb::put, 0, 0, 0, peer} : Request{Operation::get, Verb::get, 0, 0, 1, peer};
}

/// Rows of bytes in this rank's memory, and their distances at both ends.
struct LocalRows {
  const void* local;
  std::size_t rows, row_bytes, remote_stride, local_stride;
};

/// How an operation ended that gives back what a word held.
struct Fetched {
  Status status;
  std::uint64_t value = 0;
};

[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t ring_of(Queue queue) { return queue.index % command_rings; }

/// Why an operation on a peer is refused that loads and stores do not reach, nor, unless it takes them, an engine.
[[nodiscard]] BEELINE_HOST_DEVICE inline Finding route_finding(const Context& ctx, std::uint32_t peer) {
  const CallFault fault = ctx.way_to(peer).way == Way::engine ? CallFault::by_engine_only : CallFault::no_route;
  return {fault, 0, ctx.world_rank(peer)};
}
/// Refuses it.
BEELINE_HOST_DEVICE inline Status refuse_route(const Context& ctx, Operation operation, std::uint32_t peer) {
  return refuse(ctx, operation, peer, route_finding(ctx, peer), Status::unreachable);
}

/// Polls `ready()` until it is true: what waits for an engine. Returns ok; deadline; aborted, where `heeds_abort`.
template <class Ready>
BEELINE_HOST_DEVICE Status await_engine(const Context& ctx, bool heeds_abort, Ready ready) {
  std::uint64_t start = 0;
  BEELINE_NO_UNROLL
  for (std::uint32_t poll = 0;; ++poll) {
    if (ready()) return Status::ok;
    machine::back_off(poll, ctx.polling);
    if (poll % polls_per_look != 0 && !machine::backs_off(poll, ctx.polling)) continue;
    if (heeds_abort && read_abort_word(ctx) != 0) return Status::aborted;
    const std::uint64_t now = machine::clock_ns();
    if (start == 0) start = now;
    if (now - start >= ctx.deadline_ns) return Status::deadline;
  }
}

[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t load_acquired(const std::uint64_t& word) {
  return SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(cuda::memory_order_acquire);
}

/// Records a wait for an engine that has ended without success: for `least` commands, of which it has seen `observed`.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status give_up_on_engine(const Context& ctx, Request request,
                                                                 std::uint64_t least, const std::uint64_t& observed,
                                                                 Status status) {
  record_wait(ctx, Awaited{request.operation, request.peer, least, least}, load_acquired(observed),
              status == Status::deadline ? ctx.deadline_ns : 0, status);
  if (status == Status::deadline) raise_abort(ctx, ctx.own_world_rank);
  return status;
}

/// Takes the next ticket of a ring once its slot is free: until the engine has taken the command that the slot held,
/// and its poster has read the answer. Nobody holds a ticket and waits, so that whoever gives up stops nobody else.
BEELINE_HOST_DEVICE inline Status claim_command(const Context& ctx, std::uint32_t ring, std::uint64_t& ticket) {
  CommandTickets& tickets = ctx.routes->tickets[ring];
  const std::uint64_t& taken = ctx.routes->rings[ring].taken.value;
  const SystemAtomic<std::uint64_t> next(tickets.next);
  return await_engine(ctx, true, [&] {
    std::uint64_t first = next.load(cuda::memory_order_relaxed);
    const bool is_free = load_acquired(taken) + command_ring_depth > first &&
                         load_acquired(tickets.freed[first % command_ring_depth]) >= first / command_ring_depth;
    ticket = first;
    return is_free && next.compare_exchange_strong(first, first + 1, cuda::memory_order_relaxed);
  });
}

/// Lets the slot of a command go, whose answer, if any, has been read.
BEELINE_HOST_DEVICE inline void free_command(const Context& ctx, std::uint32_t ring, std::uint64_t ticket) {
  SystemAtomic<std::uint64_t>(ctx.routes->tickets[ring].freed[ticket % command_ring_depth])
      .store(ticket / command_ring_depth + 1, cuda::memory_order_release);
}

/// Does a command after everything that this thread, and those that it has synchronized with, did before: posts it, and
/// if it `answers`, waits for the engine, whose answer is what the word held.
BEELINE_HOST_DEVICE inline Fetched command_engine(const Context& ctx, Request request, std::uint32_t ring,
                                                  const void* remote, const LocalRows& rows) {
  CommandRing& commands = ctx.routes->rings[ring];
  std::uint64_t ticket = 0;
  const Status claimed = claim_command(ctx, ring, ticket);
  if (claimed != Status::ok)
    return {give_up_on_engine(ctx, request, ticket + 1 - command_ring_depth, commands.taken.value, claimed)};
  Command& command = commands.commands[ticket % command_ring_depth];
  command.verb = request.verb;
  command.width = request.width;
  command.is_signed = request.is_signed;
  command.answers = request.answers;
  command.peer = ctx.routes->members[request.peer].world_rank;
  command.remote = ctx.offset_in_slot(remote);
  command.local = reinterpret_cast<std::uintptr_t>(rows.local);
  command.rows = rows.rows;
  command.row_bytes = rows.row_bytes;
  command.remote_stride = rows.remote_stride;
  command.local_stride = rows.local_stride;
  SystemAtomic<std::uint64_t>(command.sequence).store(ticket + 1, cuda::memory_order_release);
  Fetched fetched{Status::ok};
  if (request.answers) {
    const Answer& answer = commands.answers[ticket % command_ring_depth];
    // An abort does not end a `get`: its caller may free the destination then, which the engine goes on to write.
    const bool heeds_abort = request.verb != Verb::get;
    fetched.status = await_engine(ctx, heeds_abort, [&] { return load_acquired(answer.sequence) > ticket; });
    if (fetched.status != Status::ok) {
      free_command(ctx, ring, ticket);
      return {give_up_on_engine(ctx, request, ticket + 1, answer.sequence, fetched.status)};
    }
    fetched.value = answer.value;
  }
  free_command(ctx, ring, ticket);
  return fetched;
}

/// Makes the leader's status that of the group. Also a `group.sync()`.
template <class Group>
BEELINE_HOST_DEVICE Status agree_on_engine(const Group& group, Status mine) {
  if (group.any(mine == Status::deadline)) return Status::deadline;
  return group.any(mine == Status::aborted) ? Status::aborted : Status::ok;
}

/// Puts or gets rows; a `get` until they have come. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Status move_by_engine(const Group& group, const Context& ctx, Request request, Queue queue,
                                          const void* remote, const LocalRows& rows) {
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0 && rows.rows != 0 && rows.row_bytes != 0)
    status = command_engine(ctx, request, ring_of(queue), remote, rows).status;
  return agree_on_engine(group, status);
}

/// Changes a word by one thread of the group, after everything that the group did before. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Status change_by_engine(const Group& group, const Context& ctx, Request request, Queue queue,
                                            const void* remote, std::uint64_t operand) {
  group.sync();
  Status status = Status::ok;
  const LocalRows word{reinterpret_cast<const void*>(operand), 0, 0, 0, 0};
  if (group.thread_rank() == 0) status = command_engine(ctx, request, ring_of(queue), remote, word).status;
  return agree_on_engine(group, status);
}

/// Changes a word, and gives what it held. One thread calls it.
///   expected  of compare_swap
BEELINE_HOST_DEVICE inline Fetched fetch_by_engine(const Context& ctx, Request request, const void* remote,
                                                   std::uint64_t operand, std::uint64_t expected) {
  const LocalRows word{reinterpret_cast<const void*>(operand), expected, 0, 0, 0};
  return command_engine(ctx, request, ring_of(Queue{}), remote, word);
}

/// Until an engine has done what was posted to a queue before.
///   operation    quiet: it is in place; flush: its sources may be reused
///   heeds_abort  whether an abort of the team ends it
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status drain_route(Group group, const Context& ctx, Operation operation, Queue queue,
                                                    bool heeds_abort = true) {
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    const CommandRing& ring = ctx.routes->rings[ring_of(queue)];
    const std::uint64_t& done = operation == Operation::quiet ? ring.completed.value : ring.reusable.value;
    const std::uint64_t posted = load_acquired(ctx.routes->tickets[ring_of(queue)].next);
    status = await_engine(ctx, heeds_abort, [&] { return load_acquired(done) >= posted; });
    if (status != Status::ok)
      status = give_up_on_engine(ctx, {operation, Verb::put, 0, 0, 0, no_peer}, posted, done, status);
  }
  return agree_on_engine(group, status);
}

/// Ends `at`, which has no status to return, of a peer that loads and stores do not reach.
[[noreturn]] BEELINE_COLD BEELINE_HOST_DEVICE inline void stop_at_route(const Context& ctx, std::uint32_t peer) {
  static_cast<void>(refuse_route(ctx, Operation::at, peer));
  end_call(ctx, Operation::at, route_finding(ctx, peer), Status::unreachable);
}
template <bool>
BEELINE_HOST_DEVICE std::int64_t distance_by_route(const Context& ctx, std::uint32_t peer) {
  const WayToPeer to = ctx.routes->members[peer].way;
  if (to.way != Way::direct) stop_at_route(ctx, peer);
  return ctx.distance_to(to.place);
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
