// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tasks that the threads of a host rank run themselves (docs/tasks.md, "Tasks that callers run"). By default a thread
/// of its own, a worker, runs the tasks of a queue. A program that has one thread for each core loses time by the
/// switches between the two threads. Such a program calls `run_tasks` between parts of its work, and waits by the
/// functions below. The worker then sleeps. It wakes up when calls end, so that a rank that does not call makes
/// progress, too.
///
/// On GPUs these functions run no tasks, and wait like the functions without a runner: the workers are other warps.
/// Source: GASNet, AMPoll.

#include <cstdint>

#include "beeline/control/impl/shared_worker.hpp"
#include "beeline/control/task.hpp"

namespace beeline {

/// The workers of a rank, for `run_tasks`: `Tasks::runner`. Kernels take it by value.
template <class List>
struct TaskRunner {
  void* const* workers;  ///< [count] of type `SharedTaskWorker<List>`, in the order of queues
  std::uint32_t count;   ///< 0: a GPU rank
};

/// Runs tasks that have arrived at this rank, up to `most`, on the calling thread. Does not block. Returns the number
/// of tasks that have run; 0 also in a task, and while another thread runs the queue's tasks.
/// Tasks of a queue run one at a time and in order, as a worker runs them. A function may run on any thread that
/// calls, so it must not wait for the caller, nor lock what the caller has locked. If it throws, the team ends with an
/// error that names function and poster.
/// Completion: tasks that have run may be acknowledged later, when a call finds their poster's ring empty; when calls
/// end, up to 1 ms later. If several threads call at the same time, one runs a queue's tasks, and the others return.
template <class List>
BEELINE_HOST_DEVICE std::uint32_t run_tasks([[maybe_unused]] const TaskRunner<List>& runner,
                                            [[maybe_unused]] std::uint32_t most = ~0u) {
  static_assert(!List::has_kernels, "kernels run on threads of their own");
  std::uint32_t ran = 0;
#if !BEELINE_ON_GPU
  for (std::uint32_t i = 0; i < runner.count && ran < most; ++i) {
    auto& worker = *static_cast<detail::SharedTaskWorker<List>*>(runner.workers[i]);
    if (!worker.begin_call()) continue;
    ran += worker.run(most - ran);
    worker.end_call();
  }
#endif
  return ran;
}

/// The turn of a worker that the calling thread has: see `between_tasks`.
template <class List>
class TaskTurn {
 public:
  explicit TaskTurn(detail::SharedTaskWorker<List>& worker) : worker_(worker) {}
  /// As `run_tasks`, for the tasks of this worker.
  std::uint32_t run(std::uint32_t most) const { return worker_.run(most); }

 private:
  detail::SharedTaskWorker<List>& worker_;
};

/// Calls `function(turn)` on the calling thread while no other thread runs tasks of a worker, so that it may change
/// what the worker's tasks change. By `turn`, a `TaskTurn`, it runs tasks itself: one after the other without the
/// atomic operation of each `run_tasks`, which waits until earlier stores have left the core. Does not wait. Returns
/// whether it was called: not while another thread runs tasks of the worker, and not on a GPU rank. `function` must not
/// throw.
///   worker  its index, as in `Task::worker`; worker w serves queue w % queues
template <class List, class Function>
BEELINE_HOST_DEVICE bool between_tasks([[maybe_unused]] const TaskRunner<List>& runner,
                                       [[maybe_unused]] std::uint32_t worker,
                                       [[maybe_unused]] const Function& function) {
#if BEELINE_ON_GPU
  return false;
#else
  if (worker >= runner.count) return false;
  auto& of_turn = *static_cast<detail::SharedTaskWorker<List>*>(runner.workers[worker]);
  if (!of_turn.begin_call()) return false;
  function(TaskTurn<List>(of_turn));
  of_turn.end_call();
  return true;
#endif
}

/// Waits until `ready(observed)` is true, and runs tasks meanwhile: see `poll_until` and `run_tasks`. One thread calls
/// it, outside of tasks.
template <class List, class Ready>
[[nodiscard]] BEELINE_HOST_DEVICE Status run_tasks_until(const Context& ctx, const TaskRunner<List>& runner,
                                                         const Awaited& awaited, Timeout timeout, Ready ready) {
  return poll_until(ctx, awaited, timeout, [&](std::uint64_t& observed) {
    for (std::uint32_t left = detail::polls_per_look; left > 0; --left) {
      if (ready(observed)) return true;
      if (run_tasks(runner, detail::polls_per_look) == 0) break;
    }
    return false;
  });
}

namespace detail {

/// Waits until a target's queue has a free cell, and runs tasks meanwhile. One thread calls it.
template <class List>
[[nodiscard]] BEELINE_HOST_DEVICE Status await_cell(const Context& ctx, const TaskChannel& channel,
                                                    const TaskPost& post, const TaskRunner<List>& runner) {
  TaskTickets& tickets = channel.tickets[channel.ring(post.queue, post.rank)];
  const std::uint64_t next = look_at(tickets, false).next;
  const Awaited awaited{Operation::task, post.rank, next, next + 1 - channel.depth};
  return run_tasks_until(ctx, runner, awaited, Timeout::none(), [&](std::uint64_t& observed) {
    const SeenTickets seen = look_at(tickets, false);
    observed = seen.done;
    return seen.next < seen.done + channel.depth;
  });
}

/// Calls `attempt()`, which does not wait, until its status is not `timeout`. After each time-out runs tasks until the
/// target's queue has a free cell. Every thread calls it.
template <class Group, class List, class Attempt>
[[nodiscard]] BEELINE_HOST_DEVICE Status repeat_between_tasks(const Group& group, const Context& ctx,
                                                              const TaskChannel& channel, const TaskPost& post,
                                                              const TaskRunner<List>& runner, const Attempt& attempt) {
  for (;;) {
    Status status = attempt();
    if (status != Status::timeout) return status;
    status = agree(group, group.thread_rank() == 0 ? await_cell(ctx, channel, post, runner) : Status::ok);
    if (status != Status::ok) return status;
  }
}

/// Whether a call with a runner is the call without: on a GPU, and in tasks, which follow the rule of queues.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool waits_alone(const TaskChannel& channel) {
  return executor == DeviceKind::gpu || channel.running != outside_tasks;
}

}  // namespace detail

/// As `post_task`; while the queue is full, runs tasks that have arrived at this rank. In a task it waits as
/// `post_task` does.
template <class Group, class List>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_task(const Group& group, const Context& ctx, const TaskChannel& channel,
                                                   const TaskPost& post, const TaskRunner<List>& runner) {
  if (detail::waits_alone(channel)) return post_task(group, ctx, channel, post);
  return detail::repeat_between_tasks(group, ctx, channel, post, runner,
                                      [&] { return post_task(group, ctx, channel, post, Timeout::test()); });
}

/// As `reserve_task`; while the queue is full, runs tasks that have arrived at this rank. In a task it waits as
/// `reserve_task` does.
template <class List>
[[nodiscard]] BEELINE_HOST_DEVICE Status reserve_task(const Context& ctx, const TaskChannel& channel,
                                                      const TaskPost& post, TaskSpace& space,
                                                      const TaskRunner<List>& runner) {
  if (detail::waits_alone(channel)) return reserve_task(ctx, channel, post, space);
  return detail::repeat_between_tasks(Thread{}, ctx, channel, post, runner,
                                      [&] { return reserve_task(ctx, channel, post, space, Timeout::test()); });
}

/// As `quiet` for a target's queue; runs tasks that have arrived at this rank meanwhile.
template <class Group, class List>
[[nodiscard]] BEELINE_HOST_DEVICE Status quiet(const Group& group, const Context& ctx, const TaskChannel& channel,
                                               std::uint32_t rank, std::uint32_t queue,
                                               const TaskRunner<List>& runner) {
  if (detail::executor == DeviceKind::gpu || rank >= ctx.size || queue >= channel.queues)
    return quiet(group, ctx, channel, rank, queue);
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    TaskTickets& tickets = channel.tickets[channel.ring(queue, rank)];
    const std::uint64_t posted = detail::look_at(tickets, false).next;
    status = run_tasks_until(ctx, runner, Awaited{Operation::task, rank, posted, posted}, Timeout::none(),
                             [&](std::uint64_t& observed) {
                               observed = detail::look_at_done(tickets);
                               return observed >= posted;
                             });
  }
  return agree(group, status);
}

}  // namespace beeline
