// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The workers of a target, which run the tasks of its queues: thread blocks of a small grid that holds *leases*, or
/// CPU threads of a host rank.

#include <cstdint>

#include "beeline/control/task.hpp"

namespace beeline::detail {

/// What workers go by.
struct TaskService {
  TaskChannel channel;
  TaskTarget* targets;       ///< [functions]
  std::uint64_t* heads;      ///< [queues, members] tasks of each ring that have run
  RunningTask* running;      ///< [workers]
  std::uint64_t* last_task;  ///< when a worker has begun its last task
  std::uint64_t* closing;    ///< host ranks: not 0 when workers are to end
  std::uint32_t workers;     ///< a multiple of the queues: each queue has some of its own
  std::uint64_t lease_ns, idle_ns;
};

/// One worker: the rings of one queue, of some posters.
template <class List>
class TaskWorker {
 public:
  BEELINE_HOST_DEVICE TaskWorker(const TaskService& service, const Context& ctx, std::uint32_t worker)
      : service_(service), ctx_(ctx), channel_(service.channel), worker_(worker) {
    queue_ = worker % channel_.queues, first_ = worker / channel_.queues, step_ = service.workers / channel_.queues;
    channel_.running = queue_;
  }

  /// Runs tasks until a lease ends (GPU), the host closes the queues (host rank), or the team is aborted. Every thread
  /// of the group calls it.
  template <class Group>
  BEELINE_HOST_DEVICE void serve(const Group& group) {
    const std::uint64_t start = machine::clock_ns();
    if constexpr (executor == DeviceKind::gpu) tell_posters(group, 0);
    for (std::uint32_t idle = 0;;) {
      bool found = false;
      for (std::uint32_t poster = first_; poster < channel_.members; poster += step_) {
        const std::uint32_t ran = serve_ring(group, poster);
        if (ran == has_failed) return;
        found |= ran != 0;
      }
      idle = found ? 0 : idle + 1;
      if (found) note_task(group);
      if ((found || idle % polls_per_look == 0) && group.any(group.thread_rank() == 0 && is_over(start))) break;
      if (idle > 0) machine::back_off(idle, ctx_.polling);
      if (idle > 0 && machine::backs_off(idle, ctx_.polling) && group.any(group.thread_rank() == 0 && is_over(start)))
        break;
    }
    if constexpr (executor == DeviceKind::gpu) end(group);
  }

 private:
  static constexpr std::uint32_t tasks_at_once = 64, has_failed = ~0u;

  [[nodiscard]] BEELINE_HOST_DEVICE TaskCommand& command(std::size_t ring, std::uint64_t ticket) const {
    return channel_.commands[ring * channel_.depth + ticket % channel_.depth];
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_posted(std::size_t ring, std::uint64_t ticket) const {
    return SystemAtomic<std::uint64_t>(command(ring, ticket).sequence).load(cuda::memory_order_acquire) == ticket + 1;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE DeviceAtomic<std::uint64_t> head(std::size_t ring) const {
    return DeviceAtomic<std::uint64_t>(service_.heads[ring]);
  }

  template <class Group>
  BEELINE_HOST_DEVICE std::uint32_t serve_ring(const Group& group, std::uint32_t poster) {
    const std::size_t ring = channel_.ring(queue_, poster);
    std::uint64_t ticket = head(ring).load(cuda::memory_order_relaxed);
    std::uint32_t ran = 0;
    for (; ran < tasks_at_once && group.any(group.thread_rank() == 0 && is_posted(ring, ticket)); ++ran, ++ticket)
      if (!run(group, poster, ring, ticket)) return has_failed;
    return ran;
  }

  /// Whether the team goes on.
  template <class Group>
  BEELINE_HOST_DEVICE bool run(const Group& group, std::uint32_t poster, std::size_t ring, std::uint64_t ticket) {
    const TaskCommand& what = command(ring, ticket);
    const Finding found = fault_of(what);
    if (found.fault != CallFault::none) [[unlikely]] {
      if (group.thread_rank() == 0)
        static_cast<void>(refuse(ctx_, Operation::task, poster, found, Status::invalid_argument));
      return false;
    }
    const TaskTarget& target = service_.targets[what.function];
    const TaskPlace& place = channel_.places[ctx_.rank * channel_.functions + what.function];
    const std::size_t slot = ring * channel_.depth + ticket % channel_.depth;
    const Task task{what.arguments,
                    at_offset(ctx_, place.payloads + slot * place.payload_bytes),
                    what.payload_bytes,
                    target.object,
                    what.argument_bytes,
                    poster,
                    channel_};
    if (group.thread_rank() == 0) show(what.function + 1, poster);
    List::run(what.function, group, ctx_, task);
    group.sync();
    if (group.thread_rank() == 0) complete(what, target, poster, ring, ticket);
    return true;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE Finding fault_of(const TaskCommand& what) const {
    if (what.function >= channel_.functions) return {CallFault::no_function, channel_.functions, what.function};
    if (load_acquired(service_.targets[what.function].registered) == 0)
      return {CallFault::not_registered, 0, what.function};
    const std::uint32_t bytes = List::argument_bytes(what.function);
    if (what.argument_bytes != bytes) return {CallFault::wrong_arguments, bytes, what.argument_bytes};
    const std::uint64_t room = channel_.places[ctx_.rank * channel_.functions + what.function].payload_bytes;
    if (what.payload_bytes > room) return {CallFault::long_payload, room, what.payload_bytes};
    return {CallFault::none};
  }

  BEELINE_HOST_DEVICE void complete(const TaskCommand& what, const TaskTarget& target, std::uint32_t poster,
                                    std::size_t ring, std::uint64_t ticket) {
    show(0, poster);
    const std::uint32_t place = ctx_.way_to(poster).place;
    if (target.completion != nullptr)
      SystemAtomic<std::uint64_t>(*target.completion).fetch_add(1, cuda::memory_order_release);
    if (what.reply != 0) {
      auto* const reply = reinterpret_cast<std::uint64_t*>(ctx_.translate(at_offset(ctx_, what.reply), place));
      store_signal(reply, what.reply_value, Order::memory);
    }
    head(ring).store(ticket + 1, cuda::memory_order_relaxed);
    TaskTickets& tickets = *ctx_.translate(&channel_.tickets[channel_.ring(queue_, ctx_.rank)], place);
    SystemAtomic<std::uint64_t>(tickets.done).store(ticket + 1, cuda::memory_order_release);
  }

  BEELINE_HOST_DEVICE void show(std::uint32_t function, std::uint32_t poster) const {
    RunningTask& mine = service_.running[worker_];
    const SystemAtomic<std::uint64_t> since(mine.since);
    if (function != 0) since.store(since.load(cuda::memory_order_relaxed) + 1, cuda::memory_order_relaxed);
    SystemAtomic<std::uint32_t>(mine.poster).store(poster, cuda::memory_order_relaxed);
    // In order where CPUs look at it, which costs nothing there.
    constexpr auto order = executor == DeviceKind::gpu ? cuda::memory_order_relaxed : cuda::memory_order_release;
    SystemAtomic<std::uint32_t>(mine.function).store(function, order);
  }

  template <class Group>
  BEELINE_HOST_DEVICE void note_task(const Group& group) const {
    if constexpr (executor == DeviceKind::gpu)
      if (group.thread_rank() == 0)
        DeviceAtomic<std::uint64_t>(*service_.last_task).store(machine::clock_ns(), cuda::memory_order_relaxed);
  }

  [[nodiscard]] BEELINE_HOST_DEVICE bool is_over(std::uint64_t start) const {
    if (read_abort_word(ctx_) != 0) return true;
    if constexpr (executor == DeviceKind::host) return load_acquired(*service_.closing) != 0;
    const std::uint64_t last = DeviceAtomic<std::uint64_t>(*service_.last_task).load(cuda::memory_order_relaxed);
    const std::uint64_t now = machine::clock_ns(), busy = last > start ? last : start;
    return now - start >= service_.lease_ns || (now > busy && now - busy >= service_.idle_ns);
  }

  /// Whether this rank's workers have ended, in the memory of each poster.
  template <class Group>
  BEELINE_HOST_DEVICE void tell_posters(const Group& group, std::uint64_t asleep) const {
    for (std::uint32_t member = group.thread_rank(); member < channel_.members; member += group.size()) {
      std::uint64_t* const word = ctx_.translate(&channel_.asleep[ctx_.rank], ctx_.way_to(member).place);
      SystemAtomic<std::uint64_t>(*word).store(asleep, cuda::memory_order_relaxed);
    }
  }

  /// Says that it ends, then looks at all rings once more, those of other workers too: of these two and a poster's post
  /// and look, one comes first, and the last worker to end leaves no task behind that nobody asks the host to run.
  template <class Group>
  BEELINE_HOST_DEVICE void end(const Group& group) const {
    tell_posters(group, 1);
    machine::fence_system();
    group.sync();
    machine::fence_system();
    bool any = false;
    const std::size_t rings = std::size_t{channel_.queues} * channel_.members;
    for (std::size_t ring = group.thread_rank(); ring < rings; ring += group.size())
      any |= is_posted(ring, head(ring).load(cuda::memory_order_relaxed));
    if (any) SystemAtomic<std::uint64_t>(*channel_.wanted).store(1, cuda::memory_order_release);
  }

  const TaskService& service_;
  const Context& ctx_;
  TaskChannel channel_;
  std::uint32_t worker_, queue_, first_, step_;
};

/// One lease of the workers of a GPU: a block each.
template <class List>
struct TaskKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, TaskService service) const {
    TaskWorker<List>(service, ctx, grid.block_rank()).serve(grid.block());
  }
};

}  // namespace beeline::detail
