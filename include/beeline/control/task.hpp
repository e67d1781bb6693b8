// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Active messages (control `task`): a kernel, or a CPU thread, names a function of a list that all ranks have, and a
/// worker of the target runs it with the message's arguments and payload. `Tasks` (host/tasks.hpp) makes the queues and
/// the workers; docs/control.md says when to use which control.
///
///   struct Add {
///     static constexpr const char* name = "add";
///     struct Arguments { std::uint64_t index; float value; };
///     template <class Group>
///     BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const Task& task) const {
///       const auto& [index, value] = task.as<Arguments>();
///       if (group.thread_rank() == 0) static_cast<float*>(task.object)[index] += value;
///     }
///   };
///   using List = TaskList<Add>;
///
/// Every thread of the worker calls the function: a warp on a GPU, one CPU thread on a host rank.
///
/// A function that is too large for a worker is a *kernel*: it says so, and its call operator takes a grid.
///
///   struct Solve {
///     static constexpr const char* name = "solve";
///     static constexpr bool is_kernel = true;
///     struct Arguments { std::uint64_t count; };
///     template <class Grid>
///     BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const Task& task) const { ... }
///   };
///
/// A kernel is posted like any other function. The target starts the grid (`Tasks::register_kernel`), and the task has
/// run when all blocks have ended. As kernels of `launch`, it may have `shared_bytes` and `max_threads`.
/// Source: seed 003, Extended Task Queuing (LeBeane et al., SC 2016); GASNet, active messages.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/control/impl/task_by_engine.hpp"
#include "beeline/control/impl/task_slot.hpp"
#include "beeline/device/impl/ticket_machine.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline {

/// A message, as its function receives it.
struct Task {
  const void* arguments;  ///< [argument_bytes] aligned to 16 bytes
  void* payload;          ///< [payload_bytes] aligned to 16 bytes: in the buffer that this rank has registered, or, if
                          ///< it is short, in memory of the worker. Arguments and payload are valid until the function
                          ///< returns
  std::size_t payload_bytes;
  void* object;  ///< the object that this rank has registered for the function
  std::uint32_t argument_bytes;
  std::uint32_t poster;  ///< rank of the team
  std::uint32_t worker;  ///< index of the worker that runs the task, for memory that each worker has
  TaskChannel channel;   ///< to post further tasks from here
  std::uint64_t* reply;  ///< the poster's signal, in the poster's memory; nullptr: none. If the poster is on another
                         ///< node: a word of this rank, which the worker sends when the function has returned

  /// Sets the poster's signal to `value`, which is not 0, in a task whose poster leaves the reply to the function
  /// (`TaskPost::reply_value` 0): at once, or, if the poster is on another node, when the function has returned. The
  /// signal carries only the value: it does not make earlier writes of the function visible. One thread calls it.
  BEELINE_HOST_DEVICE void answer(std::uint64_t value) const {
    if (reply != nullptr) detail::store_signal(reply, value, Order::relaxed);
  }
  template <class Arguments>
  [[nodiscard]] BEELINE_HOST_DEVICE const Arguments& as() const {
    return *static_cast<const Arguments*>(arguments);
  }
};

namespace detail {

/// Bytes of a function's arguments; 0 for an empty type.
template <class Function>
inline constexpr std::uint32_t argument_bytes_of = std::is_empty_v<typename Function::Arguments>
                                                       ? 0
                                                       : sizeof(typename Function::Arguments);

/// Whether a function is a kernel.
template <class Function>
[[nodiscard]] constexpr bool is_task_kernel() {
  if constexpr (requires { Function::is_kernel; })
    return Function::is_kernel;
  else
    return false;
}

/// FNV-1a hash of names and numbers.
constexpr std::uint64_t hash_byte(std::uint64_t hash, std::uint8_t byte) { return (hash ^ byte) * 1099511628211u; }
constexpr std::uint64_t hash_function(std::uint64_t hash, const char* name, std::size_t argument_bytes,
                                      bool is_kernel) {
  for (; *name != '\0'; ++name) hash = hash_byte(hash, static_cast<std::uint8_t>(*name));
  for (int i = 0; i < 16; i += 8) hash = hash_byte(hash, static_cast<std::uint8_t>(argument_bytes >> i));
  return hash_byte(hash, is_kernel ? 1 : 0);
}

}  // namespace detail

/// The functions that ranks run for each other. Each has an index, 0 to count - 1, which is the same on all ranks. A
/// function has a `name`, a type `Arguments` of at most `max_task_arguments` bytes, and one of the call operators
/// above.
template <class... Functions>
struct TaskList {
  static constexpr std::uint32_t count = sizeof...(Functions);
  static_assert(count > 0);
  static_assert((std::is_trivially_copyable_v<typename Functions::Arguments> && ...), "arguments travel as bytes");
  static_assert(((sizeof(typename Functions::Arguments) <= max_task_arguments) && ...), "at most 256 bytes");
  static_assert(((alignof(typename Functions::Arguments) <= 16) && ...), "arguments are aligned to 16 bytes");

  /// Whether the list has kernels, and whether one function is a kernel.
  static constexpr bool has_kernels = (detail::is_task_kernel<Functions>() || ...);
  [[nodiscard]] BEELINE_HOST_DEVICE static constexpr bool is_kernel(std::uint32_t function) {
    std::uint32_t index = 0;
    bool found = false;
    ((index++ == function ? void(found = detail::is_task_kernel<Functions>()) : void()), ...);
    return found;
  }
  template <class Function>
  static constexpr std::uint32_t index_of() {
    static_assert((std::is_same_v<Function, Functions> || ...), "the function is not in the list");
    std::uint32_t index = 0, found = 0;
    ((std::is_same_v<Function, Functions> ? void(found = index) : void(), ++index), ...);
    return found;
  }
  /// Hash of the functions' names, sizes and kinds, in the order of the list.
  static constexpr std::uint64_t hash() {
    std::uint64_t hash = 14695981039346656037u;
    ((hash = detail::hash_function(hash, Functions::name, sizeof(typename Functions::Arguments),
                                   detail::is_task_kernel<Functions>())),
     ...);
    return hash;
  }
  static const char* name(std::uint32_t function) {
    const char* const names[] = {Functions::name...};
    return names[function];
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t argument_bytes(std::uint32_t function) {
    std::uint32_t index = 0, bytes = 0;
    ((index++ == function ? void(bytes = detail::argument_bytes_of<Functions>) : void()), ...);
    return bytes;
  }
  /// Calls `visitor` with a null pointer to the function's type.
  template <class Visitor>
  static void visit(std::uint32_t function, const Visitor& visitor) {
    std::uint32_t index = 0;
    ((index++ == function ? visitor(static_cast<const Functions*>(nullptr)) : void()), ...);
  }
  /// Calls a function that is no kernel.
  template <class Group>
  BEELINE_HOST_DEVICE static void run(std::uint32_t function, const Group& group, const Context& ctx,
                                      const Task& task) {
    std::uint32_t index = 0;
    ((index++ == function ? call<Functions>(group, ctx, task) : void()), ...);
  }

 private:
  template <class Function, class Group>
  BEELINE_HOST_DEVICE static void call(const Group& group, const Context& ctx, const Task& task) {
    if constexpr (!detail::is_task_kernel<Function>()) Function{}(group, ctx, task);
  }
};

/// A task to post: the index of its function, its arguments and, if any, its payload.
struct TaskPost {
  std::uint32_t rank = 0;  ///< the target's rank in the team
  std::uint32_t queue = 0, function = 0;
  const void* arguments = nullptr;  ///< [argument_bytes] read before the call returns
  std::uint32_t argument_bytes = 0;
  const void* payload = nullptr;  ///< [payload_bytes] at an address from which the caller can load; for a target on
                                  ///< another node, if the slot does not hold it, in this rank's heap or host memory.
                                  ///< Read before the call returns
  std::size_t payload_bytes = 0;
  std::uint64_t* reply = nullptr;  ///< symmetric address of this rank's signal, set when the function has run
  std::uint64_t reply_value = 1;   ///< the signal's value; 0: the function sets it (`Task::answer`)
  /// `memory`: all earlier writes of the group are visible to the function. `relaxed`: only arguments and payload are
  /// visible to it, which saves a fence.
  Order order = Order::memory;
};

/// Makes a task of a function of `List`.
///   arguments  must exist until the task is posted
template <class List, class Function>
[[nodiscard]] BEELINE_HOST_DEVICE TaskPost task_of(const typename Function::Arguments& arguments, std::uint32_t rank,
                                                   std::uint32_t queue = 0) {
  TaskPost post;
  constexpr std::uint32_t index = List::template index_of<Function>();
  post.rank = rank, post.queue = queue, post.function = index;
  post.arguments = &arguments, post.argument_bytes = detail::argument_bytes_of<Function>;
  return post;
}

namespace detail {

/// The address at `offset` in this rank's slot; `translate` converts it to the address in a peer's slot.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::byte* at_offset(const Context& ctx, std::uint64_t offset) {
  return ctx.range + (std::uint64_t{ctx.own_world_rank} << ctx.slot_shift) + offset;
}

/// Checks the numbers of a post, before anything is touched: rank, queue, function and bytes of arguments.
[[nodiscard]] BEELINE_HOST_DEVICE inline Finding fault_of_names(const Context& ctx, const TaskChannel& channel,
                                                                const TaskPost& post) {
  if (post.rank >= ctx.size) return {CallFault::peer, ctx.size, post.rank};
  if (post.queue >= channel.queues) return {CallFault::no_task_queue, channel.queues, post.queue};
  if (post.function >= channel.functions) return {CallFault::no_function, channel.functions, post.function};
  if (post.argument_bytes > max_task_arguments)
    return {CallFault::wrong_arguments, max_task_arguments, post.argument_bytes};
  return {CallFault::none};
}
/// Checks a post's arguments, payload, reply and time-out.
///   room         bytes at the target for the post's payload
///   has_payload  whether the post says where its payload is
[[nodiscard]] BEELINE_HOST_DEVICE inline Finding fault_of(const Context& ctx, const TaskChannel& channel,
                                                          const TaskPost& post, Timeout timeout, std::uint64_t room,
                                                          bool has_payload = true) {
  const bool is_null = (post.argument_bytes != 0 && post.arguments == nullptr) ||
                       (has_payload && post.payload_bytes != 0 && post.payload == nullptr);
  if (is_null) return {CallFault::null_address, post.argument_bytes + post.payload_bytes};
  if (channel.running != outside_tasks && post.queue >= channel.running && timeout.ns != 0)
    return {CallFault::waits_in_task, channel.running, post.queue};
  const Reach reply = reach_of_word(post.reply);
  if (post.reply != nullptr && !is_sound(ctx, reply, post.rank)) return finding_in(ctx, reply, post.rank);
  if (post.payload_bytes > room) return {CallFault::long_payload, room, post.payload_bytes};
  return {CallFault::none};
}

/// A ring's tickets, as a poster has read them.
struct SeenTickets {
  std::uint64_t next, done;
};
/// Whether a post takes its ticket before its slot is free, at the same time as its loads. No ticket may remain unused:
/// the post waits for the slot until the team ends, and a refusal ends the team. CPU threads take the ticket later,
/// since their wait may be interrupted.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool claims_at_once(Timeout timeout) {
  return executor == DeviceKind::gpu && timeout.ns == Timeout::none().ns;
}

[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t look_at_done(TaskTickets& tickets) {
  // On a GPU an acquiring load would delay the loads after it. A post that writes more than its slot acquires later.
  constexpr auto order = executor == DeviceKind::gpu ? std::memory_order_relaxed : std::memory_order_acquire;
  return SystemAtomic<std::uint64_t>(tickets.done).load(order);
}
/// `next` is the poster's own ticket if it claims one.
[[nodiscard]] BEELINE_HOST_DEVICE inline SeenTickets look_at(TaskTickets& tickets, bool claims) {
  const DeviceAtomic<std::uint64_t> next(tickets.next);
  SeenTickets seen;
  seen.next = claims ? machine::take_ticket(&tickets.next) : next.load(std::memory_order_relaxed);
  seen.done = look_at_done(tickets);
  return seen;
}

/// Changes the number of tasks of a GPU's worker that wait for a slot, by 1 or -1.
BEELINE_HOST_DEVICE inline void count_waiting(const Context& ctx, const TaskChannel& channel, std::uint64_t change) {
  const DeviceAtomic<std::uint64_t> waiting(channel.tickets[channel.ring(channel.running, ctx.rank)].waiting);
  waiting.fetch_add(change, std::memory_order_relaxed);
}

/// Waits until the target has run the previous task of the slot, and sets `ticket` to the poster's ticket. One thread
/// calls it.
///   seen  the ring's tickets, as read before the call
BEELINE_HOST_DEVICE inline Status claim_task(const Context& ctx, const TaskChannel& channel, const TaskPost& post,
                                             Timeout timeout, SeenTickets seen, std::uint64_t& ticket) {
  TaskTickets& tickets = channel.tickets[channel.ring(post.queue, post.rank)];
  const DeviceAtomic<std::uint64_t> next(tickets.next);
  const Awaited awaited{Operation::task, post.rank, seen.next, seen.next + 1 - channel.depth};
  const bool is_counted = claims_at_once(timeout) && channel.running != outside_tasks && awaited.expected > seen.done;
  if (is_counted) count_waiting(ctx, channel, 1);
  const Status status = poll_until(ctx, awaited, timeout, [&](std::uint64_t& observed) {
    ticket = seen.next, observed = seen.done;
    while (ticket < observed + channel.depth)
      if (claims_at_once(timeout) || next.compare_exchange_strong(ticket, ticket + 1, std::memory_order_relaxed))
        return true;
    if (!claims_at_once(timeout)) seen.next = next.load(std::memory_order_relaxed);
    seen.done = look_at_done(tickets);
    return false;
  });
  if (is_counted) count_waiting(ctx, channel, ~std::uint64_t{0});
  return status;
}

/// Gives all threads of a group the slot number of its first thread.
template <class Group>
BEELINE_HOST_DEVICE std::uint32_t share_slot(const Group& group, std::uint32_t mine, std::uint32_t depth) {
  std::uint32_t slot = 0;
  for (std::uint32_t bit = 1; bit < depth; bit *= 2)
    if (group.any(group.thread_rank() == 0 && (mine & bit) != 0)) slot |= bit;
  return slot;
}

/// A fence towards the threads of `rank`: they see this thread's earlier writes before its later ones.
BEELINE_HOST_DEVICE inline void fence_towards(const Context& ctx, std::uint32_t rank) {
  if (rank == ctx.rank)
    machine::fence_device();
  else
    machine::fence_acquire_release();
}

/// The ring and the header that a poster writes, as far as they are known before it has a ticket.
struct TaskDraft {
  SignaledWord* ring;  ///< ring at the target, or its copy for a target on another node
  TaskHeader header;
};
[[nodiscard]] BEELINE_HOST_DEVICE inline TaskDraft draft_of(const Context& ctx, const TaskChannel& channel,
                                                            const TaskPost& post) {
  const TaskLayout layout{post.argument_bytes};
  SignaledWord* const ring = &channel.slots[channel.slot_index(channel.ring(post.queue, ctx.rank), 0) * task_words];
  return {.ring = ctx.translate(ring, ctx.access_to(post.rank).place),
          .header = {.function = post.function,
                     .argument_bytes = static_cast<std::uint16_t>(post.argument_bytes),
                     .words = static_cast<std::uint8_t>(layout.words(post.payload_bytes)),
                     .is_ordered = post.order == Order::memory || !layout.holds(post.payload_bytes),
                     .payload_bytes = post.payload_bytes,
                     .reply = post.reply == nullptr ? 0 : ctx.offset_in_slot(post.reply),
                     .reply_value = post.reply_value}};
}

/// Writes a task into its slot; from then on a worker may run it. One thread calls it.
///   is_copy  see TaskSlotWriter
template <bool is_copy = false>
BEELINE_HOST_DEVICE inline void publish_task(const Context& ctx, const TaskChannel& channel, const TaskPost& post,
                                             const TaskDraft& draft, const EarlyPayload& early, std::uint64_t ticket) {
  const TaskLayout layout{post.argument_bytes};
  if (draft.header.is_ordered && !layout.holds(post.payload_bytes)) fence_towards(ctx, post.rank);
  const TaskSlotWriter<is_copy> writer(&draft.ring[channel.slot_index(0, ticket) * task_words], ticket + 1);
  writer.store_bytes(task_header_words, post.arguments, post.argument_bytes);
  if (post.argument_bytes % task_alignment - 1 < 8) writer.store(layout.payload_word() - 1, 0);
  if (layout.holds(post.payload_bytes) && !early.store(writer, layout.payload_word()))
    writer.store_bytes(layout.payload_word(), post.payload, static_cast<std::uint32_t>(post.payload_bytes));
  writer.store_header(draft.header);
}

/// Requests a start of the target's workers if they have ended. The fence pairs with the fence of a worker that ends:
/// either this thread sees that the workers sleep, or the worker sees the task. Workers of host ranks do not end.
BEELINE_HOST_DEVICE inline void wake_workers(const Context& ctx, const TaskChannel& channel, std::uint32_t rank) {
  if constexpr (executor == DeviceKind::host) return;
  if (rank == ctx.rank)
    machine::fence_device_sequential();
  else
    machine::fence_system();
  if (SystemAtomic<std::uint64_t>(channel.asleep[rank]).load(std::memory_order_relaxed) != 0)
    SystemAtomic<std::uint64_t>(*ctx.translate(channel.wanted, ctx.access_to(rank).place))
        .store(1, std::memory_order_relaxed);
}

/// Sends a task to a target on another node: the long payload into the target's buffer, then the slot. One thread calls
/// it.
BEELINE_HOST_DEVICE inline Status send_task(const Context& ctx, const TaskChannel& channel, const TaskPost& post,
                                            const TaskPlace& at, std::uint64_t ticket) {
  const TaskLayout layout{post.argument_bytes};
  const std::uint32_t index = channel.slot_index(channel.ring(post.queue, ctx.rank), ticket);
  const bool is_long = !layout.holds(post.payload_bytes);
  Status status = Status::ok;
  if (is_long)
    status = command_for_task(ctx, Verb::put, post.rank, at.payloads + index * at.payload_bytes,
                              {post.payload, 1, post.payload_bytes, 0, 0});
  if (status != Status::ok) return status;
  const TaskDraft draft{&channel.copies[channel.slot_index(channel.ring(post.queue, post.rank), 0) * task_words],
                        draft_of(ctx, channel, post).header};
  publish_task<true>(ctx, channel, post, draft, {}, ticket);
  const SignaledWord* const copy = &draft.ring[channel.slot_index(0, ticket) * task_words];
  status = send_slot(ctx, post.rank, &channel.slots[index * task_words], copy, draft.header.words, ticket + 1);
  if (status == Status::ok && channel.wanted != nullptr)  // a lease of the target's workers may have ended meanwhile
    status = store_for_task(ctx, post.rank, ctx.offset_in_slot(channel.wanted), 1);
  if (status == Status::ok && is_long) status = drain_queue(ctx, Operation::flush, ctx.routes->queue(0), {}).status;
  return status;
}

/// `post_task` for a target on another node, after the checks. Every thread of the group calls it.
///   seen  the ring's tickets, as the first thread has read them
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE Status post_by_engine(Group group, const Context& ctx, TaskChannel channel,
                                                       TaskPost post, Timeout timeout, TaskPlace at, SeenTickets seen) {
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    std::uint64_t ticket = 0;
    status = claim_task(ctx, channel, post, timeout, seen, ticket);
    if (status == Status::ok) status = send_task(ctx, channel, post, at, ticket);
  }
  return agree(group, status);
}

}  // namespace detail

/// Posts a task: its payload is stored in the target's registered buffer, then a worker there runs the function. No CPU
/// of the target takes part, unless the target is on another node, where the engines of both carry the task.
///   timeout  limit of the wait for a free slot of the queue. A task (`Task::channel`) may wait only for queues with
///            lower numbers than its own, and passes `Timeout::test()` for others. Otherwise two ranks could wait for
///            each other's slots
/// Every thread of `group` calls it, with the same arguments. All earlier writes of the group are visible to the
/// function, unless the post's order is relaxed.
/// Completion: `reply`, or `quiet`. Ordering: tasks of a queue run in the order in which this rank posted them to one
/// target; tasks of other queues run concurrently.
/// Returns ok; timeout: nothing was posted, and the call may be repeated; invalid_argument for a bad rank, queue,
/// function, size or address, in every build (refused: see access.hpp); deadline; aborted; unreachable for CPU threads
/// of a GPU rank. The target refuses functions that are not registered and arguments of the wrong size, which only it
/// can detect; it then aborts the team with an error that names the poster's rank.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_task(const Group& group, const Context& ctx, const TaskChannel& channel,
                                                   const TaskPost& post, Timeout timeout = Timeout::none()) {
  if constexpr (detail::executor == DeviceKind::host)
    if (ctx.kind_of(ctx.rank) == DeviceKind::gpu) return Status::unreachable;
  detail::Finding found = detail::fault_of_names(ctx, channel, post);
  TaskPlace at{};
  detail::SeenTickets seen{};
  detail::TaskDraft draft{};
  detail::EarlyPayload early;
  group.sync();
  if (found.fault == CallFault::none) {  // these loads are in flight together, while the rest is checked
    if (post.payload_bytes != 0) at = channel.places[post.rank * channel.functions + post.function];
    if (group.thread_rank() == 0) {
      early.load(post.payload, post.payload_bytes);  // first: loads that a GPU issues after an atomic may wait for its
                                                     // result
      seen = detail::look_at(channel.tickets[channel.ring(post.queue, post.rank)], detail::claims_at_once(timeout));
      draft = detail::draft_of(ctx, channel, post);
      // If the slot holds the whole payload, all writes that the task has to see precede this line.
      if (draft.header.is_ordered && TaskLayout{post.argument_bytes}.holds(post.payload_bytes))
        detail::fence_towards(ctx, post.rank);
    }
    found = detail::fault_of(ctx, channel, post, timeout, at.payload_bytes);
  }
  if (found.fault != CallFault::none) [[unlikely]] {
    if (group.thread_rank() == 0)
      static_cast<void>(detail::refuse(ctx, Operation::task, post.rank, found, Status::invalid_argument));
    return Status::invalid_argument;
  }
  if (detail::is_reached_by_engine(ctx, post.rank)) [[unlikely]]
    return detail::post_by_engine(group, ctx, channel, post, timeout, at, seen);
  Status status = Status::ok;
  std::uint64_t ticket = 0;
  if (group.thread_rank() == 0) status = detail::claim_task(ctx, channel, post, timeout, seen, ticket);
  if (!TaskLayout{post.argument_bytes}.holds(post.payload_bytes)) {
    if (group.thread_rank() == 0)  // the reads of the previous payload have ended
      static_cast<void>(detail::load_acquired(channel.tickets[channel.ring(post.queue, post.rank)].done));
    status = agree(group, status);
    if (status != Status::ok) return status;
    const std::uint32_t slot =
        detail::share_slot(group, static_cast<std::uint32_t>(ticket & (channel.depth - 1)), channel.depth);
    const std::size_t index = channel.slot_index(channel.ring(post.queue, ctx.rank), slot);
    std::byte* const to = detail::at_offset(ctx, at.payloads + index * at.payload_bytes);
    detail::copy_bytes(group, ctx.translate(to, ctx.access_to(post.rank).place), post.payload, post.payload_bytes);
    group.sync();
  }
  if (group.thread_rank() == 0 && status == Status::ok) {
    detail::publish_task(ctx, channel, post, draft, early, ticket);
    detail::wake_workers(ctx, channel, post.rank);
  }
  return agree(group, status);
}

/// Space for the payload of one task: see `reserve_task`.
struct TaskSpace {
  void* payload;         ///< in the target's buffer, aligned to 16 bytes; nullptr: nothing is reserved
  std::uint64_t ticket;  ///< the task's number in its ring
};

/// Reserves the queue's next cell and room for a payload at the target, so that the caller stores the payload there and
/// `post_reserved` copies nothing.
///   post     as for `post_task`; `payload` is not read, `payload_bytes` is the largest size
///   timeout  as for `post_task`
///   space    set if the result is ok
/// Each reservation is posted, in the order of the calls: tasks that this rank posts to the same queue of the same rank
/// later run after it. Meanwhile the caller must not wait for such tasks. One thread calls it.
/// Returns as `post_task`; unreachable for a target on another node: its task is posted by `post_task`.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status reserve_task(const Context& ctx, const TaskChannel& channel,
                                                             const TaskPost& post, TaskSpace& space,
                                                             Timeout timeout = Timeout::none()) {
  if constexpr (detail::executor == DeviceKind::host)
    if (ctx.kind_of(ctx.rank) == DeviceKind::gpu) return Status::unreachable;
  detail::Finding found = detail::fault_of_names(ctx, channel, post);
  if (found.fault == CallFault::none) {
    if (detail::is_reached_by_engine(ctx, post.rank)) return Status::unreachable;
    const TaskPlace at = channel.places[post.rank * channel.functions + post.function];
    found = detail::fault_of(ctx, channel, post, timeout, at.payload_bytes, false);
    if (found.fault == CallFault::none) {
      const std::size_t ring = channel.ring(post.queue, post.rank);
      const detail::SeenTickets seen = detail::look_at(channel.tickets[ring], detail::claims_at_once(timeout));
      std::uint64_t ticket = 0;
      const Status status = detail::claim_task(ctx, channel, post, timeout, seen, ticket);
      if (status != Status::ok) return status;
      static_cast<void>(detail::load_acquired(channel.tickets[ring].done));  // reads of the previous payload have ended
      const std::size_t index = channel.slot_index(channel.ring(post.queue, ctx.rank), ticket);
      std::byte* const to = detail::at_offset(ctx, at.payloads + index * at.payload_bytes);
      space.payload = ctx.translate(to, ctx.access_to(post.rank).place), space.ticket = ticket;
      return Status::ok;
    }
  }
  static_cast<void>(detail::refuse(ctx, Operation::task, post.rank, found, Status::invalid_argument));
  return Status::invalid_argument;
}

/// Posts a task whose payload is in a reserved space. Does not wait. The thread that has stored the payload calls it.
///   post   as given to `reserve_task`, but `payload_bytes` may be smaller, also 0. `payload` is not read
///   space  from `reserve_task`; reserves nothing afterwards
BEELINE_HOST_DEVICE inline void post_reserved(const Context& ctx, const TaskChannel& channel, const TaskPost& post,
                                              TaskSpace& space) {
  const detail::TaskDraft draft = detail::draft_of(ctx, channel, post);
  if (TaskLayout{post.argument_bytes}.holds(post.payload_bytes)) {  // it travels in the slot
    TaskPost whole = post;
    whole.payload = space.payload;
    if (draft.header.is_ordered) detail::fence_towards(ctx, post.rank);
    detail::publish_task(ctx, channel, whole, draft, {}, space.ticket);
  } else {
    detail::publish_task(ctx, channel, post, draft, {}, space.ticket);
  }
  detail::wake_workers(ctx, channel, post.rank);
  space.payload = nullptr;
}

/// Blocks until the tasks that this rank has posted to `queue` of `rank` before have run; their effects are then
/// visible to the group. Every thread of `group` calls it. Returns ok, timeout, deadline, aborted; invalid_argument for
/// a rank or a queue that does not exist.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status quiet(const Group& group, const Context& ctx, const TaskChannel& channel,
                                               std::uint32_t rank, std::uint32_t queue,
                                               Timeout timeout = Timeout::none()) {
  if (rank >= ctx.size || queue >= channel.queues) return Status::invalid_argument;
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    TaskTickets& tickets = channel.tickets[channel.ring(queue, rank)];
    const std::uint64_t posted = detail::DeviceAtomic<std::uint64_t>(tickets.next).load(std::memory_order_relaxed);
    const detail::SystemAtomic<std::uint64_t> done(tickets.done);
    status = poll_until(ctx, Awaited{Operation::task, rank, posted, posted}, timeout, [&](std::uint64_t& observed) {
      observed = done.load(std::memory_order_acquire);
      return observed >= posted;
    });
  }
  return agree(group, status);
}

}  // namespace beeline
