// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations on members of a team that a rank does not reach by loads and stores (docs/design.md, Routes). All of it
/// is out of the way of the others: see `dispatch` (access.hpp). What is rare here is out of line once more: the
/// registers of a kernel are those of its deepest call.

#include <cstdint>

#include "beeline/core/command.hpp"
#include "beeline/core/command_protocol.hpp"
#include "beeline/device/impl/caller_check.hpp"
#include "beeline/device/impl/verbs.hpp"

namespace beeline {

/// An ordered stream of operations towards each peer; 0 to `max_queues` - 1. Where an engine carries them, order,
/// `flush` and `quiet` are those of a queue; loads and stores by the calling threads keep the order of all queues.
struct QueueId {
  std::uint32_t index = 0;
};

namespace detail {

/// What an operation wants of a peer: few registers, since they are held while it waits for a place in the ring.
struct Request {
  Operation operation;
  Verb verb;
  std::uint8_t width : 6;  ///< bytes of a word, or in the command; 0: rows
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

/// Why an operation on a peer is refused that loads and stores do not reach, nor, unless it takes them, an engine.
[[nodiscard]] BEELINE_HOST_DEVICE inline Finding route_finding(const Context& ctx, std::uint32_t peer) {
  const CallFault fault =
      ctx.access_to(peer).access == PeerAccess::engine ? CallFault::by_engine_only : CallFault::no_route;
  return {fault, 0, ctx.world_rank(peer)};
}
/// Refuses it.
BEELINE_HOST_DEVICE inline Status refuse_route(const Context& ctx, Operation operation, std::uint32_t peer) {
  return refuse(ctx, operation, peer, route_finding(ctx, peer), Status::unreachable);
}

/// How long a wait for an engine lasts at most.
struct EngineWait {
  bool heeds_abort = true;  ///< whether an abort of the team ends it
  Timeout timeout = Timeout::none();
};

/// Polls `ready()` until it is true: what waits for an engine. Before a deadline or an abort ends the wait, it polls
/// once more, since what came before the end counts, also while this thread was stopped. Returns ok; timeout; deadline;
/// aborted.
template <class Ready>
BEELINE_HOST_DEVICE Status await_engine(const Context& ctx, EngineWait wait, Ready ready) {
  std::uint64_t start = 0;
  Status end = Status::ok;  // of a wait that has to end
  BEELINE_NO_UNROLL
  for (std::uint32_t poll = 0;; ++poll) {
    if (ready()) return Status::ok;
    if (wait.timeout.ns == 0) return Status::timeout;
    machine::back_off(poll, ctx.polling);
    if ((poll + 1) % polls_per_look != 0 && !machine::backs_off(poll, ctx.polling)) continue;
    if (end != Status::ok) return end;
    const std::uint64_t now = machine::clock_ns();
    if (start == 0) start = now;
    if (wait.heeds_abort && read_abort_word(ctx) != 0)
      end = Status::aborted;
    else if (now - start >= ctx.deadline_ns)
      end = Status::deadline;
    else if (now - start >= wait.timeout.ns)
      return Status::timeout;
  }
}

[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t load_acquired(const std::uint64_t& word) {
  return SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

/// Records a wait for an engine that has ended without success: for `least` commands, of which there are `observed`.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status give_up_on_engine(const Context& ctx, Request request,
                                                                 std::uint64_t least, std::uint64_t observed,
                                                                 Status status) {
  record_wait(ctx, Awaited{request.operation, request.peer, least, least}, observed,
              status == Status::deadline ? ctx.deadline_ns : 0, status);
  if (status == Status::deadline) raise_abort(ctx, ctx.own_world_rank);
  return status;
}

/// What of a command its poster says; the rest is the ring's.
struct CommandFields {
  Request request;
  std::uint32_t peer;  ///< world rank
  std::uint64_t remote;
  LocalRows rows;
};
/// Those of a command on `remote`, an address of the caller's.
BEELINE_HOST_DEVICE inline CommandFields fields_of(const Context& ctx, Request request, const void* remote,
                                                   const LocalRows& rows) {
  return {request, ctx.world_rank(request.peer), ctx.offset_in_slot(remote), rows};
}
/// The same on a word.
///   expected  of compare_swap
BEELINE_HOST_DEVICE inline CommandFields word_fields(const Context& ctx, Request request, const void* remote,
                                                     std::uint64_t operand, std::uint64_t expected = 0) {
  return fields_of(ctx, request, remote, {reinterpret_cast<const void*>(operand), expected, 0, 0, 0});
}

/// What posters share lies in memory of their device, and is theirs alone.
using TicketWord = DeviceAtomic<std::uint64_t>;

/// A ring as its posters see it: see command_protocol.hpp.
///   answered  whether it is one of those of routes, whose commands may answer
template <bool answered = true>
struct PosterMemory {
  static constexpr std::uint32_t depth = command_ring_depth;
  static constexpr bool has_answers = answered;
  using Word = SystemAtomic<std::uint64_t>;
  CommandQueue queue;

  [[nodiscard]] BEELINE_HOST_DEVICE TicketWord next() const { return TicketWord(queue.tickets->next); }
  [[nodiscard]] BEELINE_HOST_DEVICE TicketWord known_taken() const { return TicketWord(queue.tickets->taken); }
  [[nodiscard]] BEELINE_HOST_DEVICE TicketWord freed(std::uint64_t slot) const {
    return TicketWord(queue.tickets->freed[slot]);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Word taken() const { return Word(queue.ring->taken.value); }
  [[nodiscard]] BEELINE_HOST_DEVICE Word sequence(std::uint64_t slot) const {
    return Word(queue.ring->commands[slot].sequence);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE TicketWord near_sequence(std::uint64_t slot) const {
    return TicketWord(queue.ring->commands[slot].sequence);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Word answer_sequence(std::uint64_t slot) const {
    return Word(queue.ring->answers[slot].sequence);
  }
  /// In four stores, since the ring may be across a bus.
  BEELINE_HOST_DEVICE void write(std::uint64_t slot, const CommandFields& fields) const {
    const Request& request = fields.request;
    const std::uint64_t head = static_cast<std::uint64_t>(request.verb) | std::uint64_t{request.width} << 8 |
                               std::uint64_t{request.is_signed} << 16 | std::uint64_t{request.answers} << 24 |
                               std::uint64_t{fields.peer} << 32;
    auto* const to = reinterpret_cast<std::byte*>(&queue.ring->commands[slot]);
    machine::store_as(to + offsetof(Command, verb), head);
    machine::store_as(to + offsetof(Command, remote),
                      machine::Word16{fields.remote, reinterpret_cast<std::uintptr_t>(fields.rows.local)});
    machine::store_as(to + offsetof(Command, rows), machine::Word16{fields.rows.rows, fields.rows.row_bytes});
    machine::store_as(to + offsetof(Command, remote_stride),
                      machine::Word16{fields.rows.remote_stride, fields.rows.local_stride});
  }
};

/// Wakes the engine, if a command that has been posted finds it asleep. A GPU wakes no thread of the host.
BEELINE_HOST_DEVICE inline void wake_engine_of([[maybe_unused]] CommandQueue queue) {
  if constexpr (executor == DeviceKind::host) {
    const std::uint64_t asleep = SystemAtomic<std::uint64_t>(queue.ring->asleep.value).load(std::memory_order_relaxed);
    if (asleep != 0) [[unlikely]]
      wake_engine(asleep);
  }
}

/// How a poster that waits finds out more: by words of the ring, which are across the bus, for itself or for all; or by
/// what others tell.
enum class Look { for_itself, for_all, by_others };

/// Thousands of threads of a GPU that poll words across the bus would leave no room on it for what they wait for: after
/// some polls of its own a thread looks only while no other does, and tells all. It pauses before: the more often the
/// bus is read, the longer a stream of the GPU takes to store a word.
class CompletionPoller {
 public:
  BEELINE_HOST_DEVICE explicit CompletionPoller(CommandQueue queue) : queue_(queue) {}

  /// Calls `find(how)`.
  template <class Find>
  BEELINE_HOST_DEVICE auto operator()(Find find) {
    if (executor == DeviceKind::host || polls_ < own_polls) {
      ++polls_;
      return find(Look::for_itself);
    }
    machine::pause_ns(pause_between_looks_ns);
    const TicketWord looking(queue_.tickets->looking);
    const bool looks =
        looking.load(std::memory_order_relaxed) == 0 && looking.exchange(1, std::memory_order_acquire) == 0;
    const auto found = find(looks ? Look::for_all : Look::by_others);
    if (looks) looking.store(0, std::memory_order_release);
    return found;
  }

 private:
  static constexpr std::uint32_t own_polls = 16;  ///< a round trip of a queue with a single user takes fewer
  static constexpr std::uint32_t pause_between_looks_ns = 1000;
  CommandQueue queue_;
  std::uint32_t polls_ = 0;
};

/// Until there is a ticket, up to a time-out.
template <bool answered>
BEELINE_HOST_DEVICE Status claim_command(const Context& ctx, CommandQueue queue, Timeout timeout,
                                         std::uint64_t& ticket) {
  bool waits = false;
  CompletionPoller looker(queue);
  return await_engine(ctx, {true, timeout}, [&] {
    const Claim claim =
        looker([&](Look look) { return try_claim(PosterMemory<answered>{queue}, ticket, look != Look::by_others); });
    if (claim == Claim::full && !waits) {
      waits = true;
      TicketWord(queue.tickets->waits).fetch_add(1, std::memory_order_relaxed);
    }
    return claim == Claim::got;
  });
}

/// Posts a command. A device engine that has gone to sleep is asked for by way of the host.
template <bool answered>
BEELINE_HOST_DEVICE void post_command(CommandQueue queue, const CommandFields& fields, std::uint64_t ticket) {
  const PosterMemory<answered> memory{queue};
  const bool answers = fields.request.answers != 0;
  if constexpr (!answered)
    if (queue.wanted != nullptr) {
      const std::uint64_t asleep = publish_to_sleeper(memory, fields, answers, ticket);
      if (asleep == 0) return;
      SystemAtomic<std::uint64_t>(*queue.wanted).store(1, std::memory_order_release);
      if constexpr (executor == DeviceKind::host) wake_engine(asleep);
      return;
    }
  publish_command(memory, fields, answers, ticket);
  wake_engine_of(queue);
}

/// Does a command after everything that this thread, and those that it has synchronized with, did before: posts it, and
/// if it `answers`, waits for the engine, whose answer is what the word held.
///   answered  whether commands of the ring may answer
///   timeout   of the wait for a place in the ring
template <bool answered = true>
BEELINE_HOST_DEVICE Fetched command_engine(const Context& ctx, CommandQueue queue, const CommandFields& fields,
                                           Timeout timeout = Timeout::none()) {
  const Request request = fields.request;
  const PosterMemory<answered> memory{queue};
  std::uint64_t ticket = 0;
  const Status claimed = claim_command<answered>(ctx, queue, timeout, ticket);
  if (claimed == Status::timeout) return {claimed};
  if (claimed != Status::ok)
    return {give_up_on_engine(ctx, request, ticket + 1 - command_ring_depth, load_acquired(queue.ring->taken.value),
                              claimed)};
  post_command<answered>(queue, fields, ticket);
  if (!answered || request.answers == 0) return {Status::ok};
  const Answer& answer = queue.ring->answers[ticket % command_ring_depth];
  // An abort does not end a `get`: its caller may free the destination then, which the engine goes on to write. But it
  // tells whether the bytes have come: an engine also answers when none can come any more.
  const bool gets = has_shape<VerbShape::from_peer>(request.verb);
  Status status = await_engine(ctx, {!gets}, [&] { return is_answered(memory, ticket); });
  if (status == Status::ok && gets && read_abort_word(ctx) != 0) status = Status::aborted;
  const std::uint64_t value = status == Status::ok ? answer.value : 0;
  free_slot(memory, ticket);
  if (status != Status::ok)
    return {give_up_on_engine(ctx, request, ticket + 1, load_acquired(answer.sequence), status)};
  return {Status::ok, value};
}

/// Makes the leader's status that of the group. Also a `group.sync()`.
template <class Group>
BEELINE_HOST_DEVICE Status agree_on_engine(const Group& group, Status mine) {
  if (group.any(mine == Status::deadline)) return Status::deadline;
  return group.any(mine == Status::aborted) ? Status::aborted : Status::ok;
}

/// Puts or gets rows; a `get` until they have come. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Status move_by_engine(const Group& group, const Context& ctx, Request request, QueueId queue,
                                          const void* remote, const LocalRows& rows) {
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0 && rows.rows != 0 && rows.row_bytes != 0)
    status = command_engine(ctx, ctx.routes->queue(queue.index), fields_of(ctx, request, remote, rows)).status;
  return agree_on_engine(group, status);
}

/// Changes a word by one thread of the group, after everything that the group did before. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Status change_by_engine(const Group& group, const Context& ctx, Request request, QueueId queue,
                                            const void* remote, std::uint64_t operand) {
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0)
    status = command_engine(ctx, ctx.routes->queue(queue.index), word_fields(ctx, request, remote, operand)).status;
  return agree_on_engine(group, status);
}

/// Changes a word, and gives what it held. One thread calls it.
///   expected  of compare_swap
BEELINE_HOST_DEVICE inline Fetched fetch_by_engine(const Context& ctx, Request request, const void* remote,
                                                   std::uint64_t operand, std::uint64_t expected) {
  return command_engine(ctx, ctx.routes->queue(0), word_fields(ctx, request, remote, operand, expected));
}

/// The peer, a rank of the team, of the first command that an engine has not done, for errors; `no_peer` where that is
/// not known, as on GPUs, whose kernels need their registers.
///   done  commands that it has done
BEELINE_HOST_DEVICE inline std::uint32_t peer_of_first([[maybe_unused]] const Context& ctx,
                                                       [[maybe_unused]] CommandQueue queue,
                                                       [[maybe_unused]] std::uint64_t done) {
  if constexpr (executor == DeviceKind::host) {
    const Command& first = queue.ring->commands[done % command_ring_depth];
    if (load_acquired(first.sequence) != done + 1) return no_peer;
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
      if (ctx.world_rank(peer) == first.peer) return peer;
  }
  return no_peer;
}

/// Reads `completed_mirror`, which an engine's stream writes to the posters' own memory, if the stream has written it
/// lately. The words in host memory, which are always right in the end, are then read only when that takes long, and
/// seldom: such a read takes as long as four of the mirror, and the stream stores more slowly meanwhile.
class NearLook {
 public:
  /// Reads both words at once: a load takes as long as a poll.
  BEELINE_HOST_DEVICE explicit NearLook(CommandQueue queue) : word_(queue.tickets->completed_mirror) {
    std::uint64_t mirror = 0;
    if constexpr (executor == DeviceKind::gpu) mirror = TicketWord(word_).load(std::memory_order_relaxed);
    posted_ = TicketWord(queue.tickets->next).load(std::memory_order_acquire);
    has_mirror_ = mirror != 0 && DoneCount{mirror}.commands() + command_ring_depth >= posted_;
  }
  /// Commands that were posted before this wait.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t posted() const { return posted_; }
  /// Whether it is done, as `seen` says. `looks_far` is set where it does not, and the others are to be asked.
  BEELINE_HOST_DEVICE bool operator()(DoneCount& seen, bool& looks_far) {
    looks_far = true;
    if (!has_mirror_) return false;
    seen = {load_acquired(word_)};
    if (seen.commands() >= posted_) return true;
    ++polls_;
    looks_far = polls_ >= near_polls && polls_ % polls_for_far == 0;
    return false;
  }

 private:
  static constexpr std::uint32_t near_polls = 24;    ///< a round trip of a queue with a single user takes fewer
  static constexpr std::uint32_t polls_for_far = 8;  ///< from then on
  std::uint64_t& word_;
  std::uint64_t posted_ = 0;
  std::uint32_t polls_ = 0;
  bool has_mirror_ = false;
};

/// Until an engine has done what was posted to a queue before. One thread calls it. The value is 1 where the engine has
/// refused any command of the queue.
///   operation  quiet: it is in place; flush: its sources may be reused
BEELINE_HOST_DEVICE inline Fetched drain_queue(const Context& ctx, Operation operation, CommandQueue queue,
                                               EngineWait wait) {
  const bool in_place = operation == Operation::quiet;
  const std::uint64_t& done = in_place ? queue.ring->completed.value : queue.ring->reusable.value;
  const TicketWord known(in_place ? queue.tickets->completed : queue.tickets->reusable);
  CompletionPoller looker(queue);
  NearLook look_near(queue);
  const std::uint64_t posted = look_near.posted();
  DoneCount seen{};
  const Status status = await_engine(ctx, wait, [&] {
    bool looks_far = false;
    if (look_near(seen, looks_far)) return true;
    return looks_far && looker([&](Look look) {
             seen = {look == Look::by_others ? known.load(std::memory_order_acquire) : load_acquired(done)};
             if (look == Look::for_all) known.store(seen.word, std::memory_order_release);
             return seen.commands() >= posted;
           });
  });
  if (status == Status::ok || status == Status::timeout) return {status, seen.has_refused() ? 1u : 0u};
  const std::uint64_t observed = DoneCount{load_acquired(done)}.commands();
  const std::uint32_t peer = peer_of_first(ctx, queue, observed);
  return {give_up_on_engine(ctx, {operation, Verb::put, 0, 0, 0, peer}, posted, observed, status)};
}

/// The same by a group, of a queue of operations. Every thread calls it.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status drain_route(Group group, const Context& ctx, Operation operation, QueueId queue,
                                                    bool heeds_abort = true) {
  group.sync();
  Status status = Status::ok;
  if (operation == Operation::quiet && group.thread_rank() == 0) wake_engine_of(ctx.routes->queue(queue.index));
  if (group.thread_rank() == 0)
    status = drain_queue(ctx, operation, ctx.routes->queue(queue.index), {heeds_abort}).status;
  return agree_on_engine(group, status);
}

/// Ends `at`, which has no status to return, of a peer that loads and stores do not reach.
[[noreturn]] BEELINE_COLD BEELINE_HOST_DEVICE inline void stop_at_route(const Context& ctx, std::uint32_t peer) {
  static_cast<void>(refuse_route(ctx, Operation::at, peer));
  end_call(ctx, Operation::at, route_finding(ctx, peer), Status::unreachable);
}
template <bool>
BEELINE_HOST_DEVICE std::int64_t distance_by_route(const Context& ctx, std::uint32_t peer) {
  const AccessToPeer to = ctx.routes->members[peer].to;
  if (to.access != PeerAccess::direct) stop_at_route(ctx, peer);
  return ctx.distance_to(to.place);
}

/// `ok`, or `unreachable` after one thread of the group has refused what takes loads and stores of every member.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status check_all_direct(Group group, const Context& ctx, Operation operation) {
  BEELINE_NO_UNROLL
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
    if (ctx.access_to(peer).access != PeerAccess::direct)
      return group.thread_rank() == 0 ? refuse_route(ctx, operation, peer) : Status::unreachable;
  return Status::ok;
}

}  // namespace detail

}  // namespace beeline
