// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations on members of a team that a rank does not reach by loads and stores (docs/design.md, Routes). This code
/// is out of line, so that it does not slow direct operations: see `dispatch` (access.hpp). Rare parts of it are out of
/// line a second time, since a kernel's registers are those of its deepest call.

#include <cstdint>

#include "beeline/core/command.hpp"
#include "beeline/core/command_protocol.hpp"
#include "beeline/device/impl/caller_check.hpp"
#include "beeline/device/impl/verbs.hpp"

namespace beeline {

/// An ordered sequence of operations towards each peer; 0 to `max_queues` - 1. If an engine carries operations, order,
/// `flush` and `quiet` concern one queue. Loads and stores of the calling threads keep their order in all queues
/// together.
struct QueueId {
  std::uint32_t index = 0;
};

namespace detail {

/// The request of an operation to a peer. It takes few registers, since they are held while the operation waits for a
/// slot of the ring.
struct Request {
  Operation operation;
  Verb verb;
  std::uint8_t width : 6;  ///< bytes of a word, or of data in the command; 0: rows
  std::uint8_t is_signed : 1;
  std::uint8_t answers : 1;  ///< the poster waits for the word's old value or the bytes of a `get`
  std::uint32_t peer;
};
static_assert(sizeof(Request) == 8);

/// A put, or a get, of rows.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr Request move_request(bool puts, std::uint32_t peer) {
  return puts ? Request{Operation::put, Verb::put, 0, 0, 0, peer} : Request{Operation::get, Verb::get, 0, 0, 1, peer};
}

/// Rows of bytes in this rank's memory, and the strides at both ends.
struct LocalRows {
  const void* local;
  std::size_t rows, row_bytes, remote_stride, local_stride;
};

/// The result of an operation that returns a word's old value.
struct Fetched {
  Status status;
  std::uint64_t value = 0;
};

/// The fault of an operation on a peer that loads and stores do not reach: no engine reaches the peer either, or the
/// operation needs loads and stores.
[[nodiscard]] BEELINE_HOST_DEVICE inline Finding route_finding(const Context& ctx, std::uint32_t peer) {
  const CallFault fault =
      ctx.access_to(peer).access == PeerAccess::engine ? CallFault::by_engine_only : CallFault::no_route;
  return {fault, 0, ctx.world_rank(peer)};
}
/// Refuses an operation with `route_finding`.
BEELINE_HOST_DEVICE inline Status refuse_route(const Context& ctx, Operation operation, std::uint32_t peer) {
  return refuse(ctx, operation, peer, route_finding(ctx, peer), Status::unreachable);
}

/// Conditions that end a wait for an engine.
struct EngineWait {
  bool heeds_abort = true;  ///< whether an abort of the team ends the wait
  Timeout timeout = Timeout::none();
};

/// Waits for an engine: polls `ready()` until it is true. Polls once more before a deadline or an abort ends the wait,
/// since a completion before the end counts, also if this thread was stopped meanwhile. Returns ok; timeout; deadline;
/// aborted.
template <class Ready>
BEELINE_HOST_DEVICE Status await_engine(const Context& ctx, EngineWait wait, Ready ready) {
  std::uint64_t start = 0;
  Status end = Status::ok;  // status of a wait that has to end
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
    else if (now - start >= wait.timeout.ns && wait.timeout.ns < ctx.deadline_ns)
      return Status::timeout;  // also if this thread was stopped until after the deadline
    else if (now - start >= ctx.deadline_ns)
      end = Status::deadline;
  }
}

[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t load_acquired(const std::uint64_t& word) {
  return SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

/// Records a failed wait for an engine: it waited until `least` commands were done, and `observed` were done.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status give_up_on_engine(const Context& ctx, Request request,
                                                                 std::uint64_t least, std::uint64_t observed,
                                                                 Status status) {
  record_wait(ctx, Awaited{request.operation, request.peer, least, least}, observed,
              status == Status::deadline ? ctx.deadline_ns : 0, status);
  if (status == Status::deadline) raise_abort(ctx, ctx.own_world_rank);
  return status;
}

/// The fields of a command that its poster sets; the ring sets the others.
struct CommandFields {
  Request request;
  std::uint32_t peer;  ///< world rank
  std::uint64_t remote;
  LocalRows rows;
};
/// The fields of a command on `remote`, a symmetric address of the caller.
BEELINE_HOST_DEVICE inline CommandFields fields_of(const Context& ctx, Request request, const void* remote,
                                                   const LocalRows& rows) {
  return {request, ctx.world_rank(request.peer), ctx.offset_in_slot(remote), rows};
}
/// The fields of a command on a word.
///   expected  the expected value of compare_swap
BEELINE_HOST_DEVICE inline CommandFields word_fields(const Context& ctx, Request request, const void* remote,
                                                     std::uint64_t operand, std::uint64_t expected = 0) {
  return fields_of(ctx, request, remote, {reinterpret_cast<const void*>(operand), expected, 0, 0, 0});
}

/// A word that the posters of a ring share, in memory of their device; no other device uses it.
using TicketWord = DeviceAtomic<std::uint64_t>;

/// The posters' access to a ring: see command_protocol.hpp.
///   answered  whether the ring belongs to routes, whose commands may have answers
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
  /// Writes a command in four stores, since the ring may be across a bus.
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

/// Wakes the engine if it is asleep after a post. A GPU cannot wake a thread of the host.
BEELINE_HOST_DEVICE inline void wake_engine_of([[maybe_unused]] CommandQueue queue) {
  if constexpr (executor == DeviceKind::host) {
    const std::uint64_t asleep = SystemAtomic<std::uint64_t>(queue.ring->asleep.value).load(std::memory_order_relaxed);
    if (asleep != 0) [[unlikely]]
      wake_engine(asleep);
  }
}

/// How a waiting poster polls: it reads words of the ring across the bus, for itself or for all posters, or it reads
/// copies that other posters have stored.
enum class Look { for_itself, for_all, by_others };

/// Limits the polls across the bus. If thousands of GPU threads polled words across the bus, they would delay the
/// transfers for which they wait. After some own polls a thread reads the ring only while no other thread does, and
/// publishes the result to all. Before each read it pauses, since frequent reads also delay a stream's store of a word.
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
  static constexpr std::uint32_t own_polls = 16;  ///< more than a round trip of a queue with one user takes
  static constexpr std::uint32_t pause_between_looks_ns = 1000;
  CommandQueue queue_;
  std::uint32_t polls_ = 0;
};

/// Waits until there is a ticket, up to a time-out.
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

/// Posts a command. If the queue's device engine sleeps, asks the host to start it again.
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

/// Posts a command after all earlier writes of this thread and of threads with which it has synchronized. If the
/// command `answers`, waits for the engine's answer, which is the word's old value.
///   answered  whether commands of the ring may answer
///   timeout   limit of the wait for a slot of the ring
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
  // An abort does not end the wait of a `get`: the caller could then free the destination while the engine still writes
  // it. After the answer, the abort word says whether bytes or value may be missing: an engine also answers if none can
  // arrive any more.
  const bool gets = has_shape<VerbShape::from_peer>(request.verb);
  Status status = await_engine(ctx, {!gets}, [&] { return is_answered(memory, ticket); });
  if (status == Status::ok && read_abort_word(ctx) != 0) status = Status::aborted;
  const std::uint64_t value = status == Status::ok ? answer.value : 0;
  free_slot(memory, ticket);
  if (status != Status::ok)
    return {give_up_on_engine(ctx, request, ticket + 1, load_acquired(answer.sequence), status)};
  return {Status::ok, value};
}

/// Gives the status of the group's first thread to the whole group. Includes a `group.sync()`.
template <class Group>
BEELINE_HOST_DEVICE Status agree_on_engine(const Group& group, Status mine) {
  if (group.any(mine == Status::deadline)) return Status::deadline;
  return group.any(mine == Status::aborted) ? Status::aborted : Status::ok;
}

/// Puts or gets rows; a `get` waits until they have arrived. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Status move_by_engine(const Group& group, const Context& ctx, Request request, QueueId queue,
                                          const void* remote, const LocalRows& rows) {
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0 && rows.rows != 0 && rows.row_bytes != 0)
    status = command_engine(ctx, ctx.routes->queue(queue.index), fields_of(ctx, request, remote, rows)).status;
  return agree_on_engine(group, status);
}

/// One thread of the group changes a word, after all earlier writes of the group. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Status change_by_engine(const Group& group, const Context& ctx, Request request, QueueId queue,
                                            const void* remote, std::uint64_t operand) {
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0)
    status = command_engine(ctx, ctx.routes->queue(queue.index), word_fields(ctx, request, remote, operand)).status;
  return agree_on_engine(group, status);
}

/// Changes a word, and returns its old value. One thread calls it.
///   expected  the expected value of compare_swap
BEELINE_HOST_DEVICE inline Fetched fetch_by_engine(const Context& ctx, Request request, const void* remote,
                                                   std::uint64_t operand, std::uint64_t expected) {
  return command_engine(ctx, ctx.routes->queue(0), word_fields(ctx, request, remote, operand, expected));
}

/// The peer, a rank of the team, of the first command that an engine has not done, for errors; `no_peer` if it is not
/// known, as on GPUs, to save registers.
///   done  number of commands that the engine has done
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
/// recently. The words in host memory, which are always correct in the end, are then read only in long waits, and
/// rarely: such a read takes as long as four reads of the mirror, and delays the stream's stores.
class NearLook {
 public:
  /// Reads both words with overlapping loads, since each load takes as long as a poll.
  BEELINE_HOST_DEVICE explicit NearLook(CommandQueue queue) : word_(queue.tickets->completed_mirror) {
    std::uint64_t mirror = 0;
    if constexpr (executor == DeviceKind::gpu) mirror = TicketWord(word_).load(std::memory_order_relaxed);
    posted_ = TicketWord(queue.tickets->next).load(std::memory_order_acquire);
    has_mirror_ = mirror != 0 && DoneCount{mirror}.commands() + command_ring_depth >= posted_;
  }
  /// Number of commands that were posted before this wait.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t posted() const { return posted_; }
  /// Whether all these commands are done, by the mirror, whose value is returned in `seen`. Sets `looks_far` if they
  /// are not, and the words in host memory have to be read.
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
  static constexpr std::uint32_t near_polls = 24;    ///< more than a round trip of a queue with one user takes
  static constexpr std::uint32_t polls_for_far = 8;  ///< polls of the mirror for each read of host memory after that
  std::uint64_t& word_;
  std::uint64_t posted_ = 0;
  std::uint32_t polls_ = 0;
  bool has_mirror_ = false;
};

/// Waits until an engine has done all earlier commands of a queue. One thread calls it. The value is 1 if the engine
/// has refused any command of the queue.
///   operation  quiet: commands are complete at their targets; flush: their sources may be reused
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

/// As `drain_queue`, for a group and a queue of operations. Every thread calls it.
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

/// Ends a call of `at`, which returns no status, for a peer that loads and stores do not reach.
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

}  // namespace detail

}  // namespace beeline
