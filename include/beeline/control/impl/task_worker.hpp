// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The workers of a target, which run the tasks of its queues: warps of a small grid that holds *leases*, or CPU
/// threads of a host rank.

#include <cstdint>

#include "beeline/control/impl/lease.hpp"
#include "beeline/control/impl/task_kernel.hpp"
#include "beeline/control/impl/task_lease.hpp"

namespace beeline::detail {

/// Largest number of workers on one multiprocessor.
inline constexpr std::uint32_t most_workers_of_block = 16;

/// The data of all workers of a rank.
struct TaskService {
  TaskChannel channel;
  TaskTarget* targets;     ///< [functions]
  std::uint64_t* heads;    ///< [queues, members] number of tasks of each ring that have run
  RunningTask* running;    ///< [workers]
  TaskLease* shared;       ///< state of the lease
  std::uint64_t* closing;  ///< host ranks: not 0 if workers have to end
  std::uint32_t workers;   ///< number of workers, a multiple of `queues`: each worker serves one queue
  Lease lease;             ///< the lease of a GPU's workers
  TaskCalls kernels;       ///< calls of kernels, for lists that have kernels
};

/// The turns of a worker whose tasks no other thread runs.
struct EveryTurn {
  BEELINE_HOST_DEVICE static constexpr bool begin() { return true; }
  BEELINE_HOST_DEVICE static constexpr void end() {}
};

/// One worker, which serves the rings of some posters for one queue.
template <class List, class Group>
class TaskWorker {
 public:
  ///   targets  [functions] copy of the service's table
  BEELINE_HOST_DEVICE TaskWorker(const Group& group, const Context& ctx, const TaskService& service,
                                 const TaskTarget* targets, std::uint32_t worker, TaskScratch& scratch)
      : group_(group), ctx_(ctx), service_(service), channel_(service.channel), targets_(targets), scratch_(scratch),
        worker_(worker) {
    queue_ = worker % channel_.queues, first_ = worker / channel_.queues, step_ = service.workers / channel_.queues;
    channel_.running = queue_, next_ = first_;
    looks_ = executor == DeviceKind::gpu && first_ + 2 * step_ >= channel_.members ? most_looks : 1;
    begun_ = SystemAtomic<std::uint64_t>(service.running[worker].begun).load(std::memory_order_relaxed);
    for (std::uint32_t poster = group.thread_rank(); poster < channel_.members; poster += group.size()) {
      scratch.heads[poster] = head(channel_.ring(queue_, poster)).load(std::memory_order_relaxed);
      scratch.posters[poster] =
          is_reached_by_engine(ctx, poster) ? nullptr : ctx.translate(at_offset(ctx, 0), ctx.access_to(poster).place);
      scratch.unacknowledged[poster] = 0;
    }
    group.sync();
  }

  /// Runs tasks until a lease ends (GPU), the host closes the queues (host rank), or the team is aborted. Every thread
  /// of the group calls it.
  ///   turns  `EveryTurn`, or what decides whether this thread or another one runs the tasks
  template <class Turns>
  BEELINE_HOST_DEVICE void serve(Turns& turns) {
    start_ = machine::clock_ns();
    if constexpr (executor == DeviceKind::gpu) {
      if (group_.thread_rank() == 0) service_.shared->begin();
      publish_asleep(0);
    }
    std::uint32_t passes = 0;  // since the last check of the clock and the abort word
    bool has_run = false;      // whether a task has run since that check
    std::uint32_t looks = 0;
    bool resumes = List::has_kernels;
    for (std::uint32_t idle = 0;; resumes = is_paused()) {
      if (!turns.begin()) {
        if (is_over(false)) break;
        idle = 0;
        continue;
      }
      const std::uint32_t ran = resumes ? resume() : serve_rings();
      if (ran == has_failed) return leave();
      if (is_paused() && may_end()) break;
      if (is_paused()) continue;
      has_run |= ran != 0;
      idle = ran != 0 ? 0 : idle + looks_;
      passes += looks_ + ran;
      if (idle == passes_before_acknowledging) acknowledge_rest();
      turns.end();
      if (idle > 0) machine::back_off(idle, ctx_.polling);
      if (passes < polls_per_look && !machine::backs_off(idle, ctx_.polling)) continue;
      if (executor == DeviceKind::gpu && ++looks % looks_before_acknowledging == 0) acknowledge_rest();
      if (group_.any(group_.thread_rank() == 0 && is_over(has_run)) && may_end()) break;
      passes = 0, has_run = false;
    }
    if constexpr (executor == DeviceKind::gpu) end();
  }

  /// Runs up to `most` tasks that have arrived, for a thread of a host rank that has other work, too: one of each ring
  /// in turn, and acknowledges tasks of a ring together. Adds to `ran` how many have run. Returns false if the team is
  /// aborted.
  bool serve_some(std::uint32_t most, std::uint32_t& ran) {
    if (read_abort_word(ctx_) != 0) return false;
    for (std::uint32_t empty = first_; ran < most && empty < channel_.members;) {
      const std::uint32_t poster = next_;
      next_ = poster + step_ < channel_.members ? poster + step_ : first_;
      const std::uint64_t ticket = scratch_.heads[poster];
      const SignaledWord seen = TaskSlotReader<Group>(group_, scratch_).look(slot(poster, ticket), ticket + 1);
      if (seen.signal == ticket + 1) prefetch_after(poster, ticket);
      const std::uint32_t here = serve_ring<true>(poster, {ticket, seen});
      if (here == has_failed) return false;
      if (here == 0 && scratch_.unacknowledged[poster] != 0) acknowledge(poster, ticket, TaskTarget{}, 0, 0);
      ran += here;
      empty = here == 0 ? empty + step_ : first_;
    }
    return true;
  }

 private:
  /// Prefetches what the tasks after `ticket` bring, which another core has written: the header of the second, and the
  /// beginning of the payload of the first, if it has arrived.
  void prefetch_after(std::uint32_t poster, std::uint64_t ticket) const {
    __builtin_prefetch(&slot(poster, ticket + 2)[task_word_position(task_header_words - 1)]);
    const SignaledWord* const next = slot(poster, ticket + 1);
    const SignaledWord first = load_task_word(&next[task_word_position(0)], ticket + 2);
    if (first.signal != ticket + 2) return;
    TaskHeader header{};
    std::memcpy(&header, &first.value, sizeof first.value);
    header.payload_bytes = load_task_word(&next[task_word_position(1)], ticket + 2).value;
    if (header.function >= channel_.functions || TaskLayout{header.argument_bytes}.holds(header.payload_bytes)) return;
    const auto* const payload = static_cast<const std::byte*>(payload_of(header, poster, ticket + 1));
    for (std::uint32_t at = 0; at < prefetched_bytes; at += 64) __builtin_prefetch(payload + at);
  }
  /// The payload of a task, which is too long for its slot.
  [[nodiscard]] BEELINE_HOST_DEVICE void* payload_of(const TaskHeader& header, std::uint32_t poster,
                                                     std::uint64_t ticket) const {
    const TaskPlace& place = channel_.places[ctx_.rank * channel_.functions + header.function];
    return at_offset(ctx_,
                     place.payloads + channel_.slot_index(channel_.ring(queue_, poster), ticket) * place.payload_bytes);
  }
  static constexpr std::uint32_t tasks_at_once = 64, has_failed = ~0u;
  /// Bytes of a payload that are prefetched before its task runs: then the function's own loads run ahead.
  static constexpr std::uint32_t prefetched_bytes = 512;
  /// Number of completed tasks that are acknowledged together, if their poster waits for none of them separately.
  static constexpr std::uint32_t most_unacknowledged = 32;
  /// Polls of empty rings, some 5 us, before answered tasks are acknowledged: a poster that posts one task after the
  /// other is then not delayed by a fence.
  static constexpr std::uint32_t passes_before_acknowledging = 16;
  /// Polls of a GPU worker's rings, if it has only two, before other work.
  static constexpr std::uint32_t most_looks = 4;
  static_assert(passes_before_acknowledging % most_looks == 0);
  /// Checks of the clock before answered tasks are acknowledged while tasks of other posters continue to arrive.
  static constexpr std::uint32_t looks_before_acknowledging = 16;
  /// Polls of a kernel's end for each check of the clock and the abort word.
  static constexpr std::uint32_t polls_of_kernel = executor == DeviceKind::gpu ? 16 : 1;

  [[nodiscard]] BEELINE_HOST_DEVICE const SignaledWord* slot(std::uint32_t poster, std::uint64_t ticket) const {
    return &channel_.slots[channel_.slot_index(channel_.ring(queue_, poster), ticket) * task_words];
  }
  [[nodiscard]] BEELINE_HOST_DEVICE DeviceAtomic<std::uint64_t> head(std::size_t ring) const {
    return DeviceAtomic<std::uint64_t>(service_.heads[ring]);
  }
  /// This thread's word of a ring's next slot, and the ticket that is expected in the slot.
  struct SeenWord {
    std::uint64_t ticket;
    SignaledWord word;
  };
  /// Words of two rings.
  struct Seen {
    SeenWord here, there;
  };
  /// Polls two rings with overlapping loads, up to `looks_` times, until a header has arrived. The header's last word
  /// is written last.
  [[nodiscard]] BEELINE_HOST_DEVICE Seen look(std::uint32_t poster, std::uint32_t next) const {
    const TaskSlotReader<Group> reader(group_, scratch_);
    const bool is_last = group_.thread_rank() + 1 == task_header_words;
    const std::uint64_t here = scratch_.heads[poster], there = scratch_.heads[next];
    const SignaledWord* const slot_here = slot(poster, here);
    const SignaledWord* const slot_there = slot(next, there);
    Seen seen{{here, {}}, {there, {}}};
    BEELINE_NO_UNROLL
    for (std::uint32_t left = looks_; left > 0; --left) {
      seen.here.word = reader.look(slot_here, here + 1), seen.there.word = reader.look(slot_there, there + 1);
      if (group_.any(is_last && (seen.here.word.signal == here + 1 || seen.there.word.signal == there + 1))) break;
    }
    return seen;
  }

  BEELINE_HOST_DEVICE void leave() const {
    if constexpr (executor == DeviceKind::gpu)
      if (group_.thread_rank() == 0) service_.shared->leave();
  }

  /// Continues the task whose kernel outlasted the last lease, before tasks of other rings: a worker has one kernel at
  /// a time, and a request for another kernel would overwrite the request for this one.
  BEELINE_HOST_DEVICE std::uint32_t resume() {
    const TaskCall& call = service_.kernels.calls[worker_];
    const auto poster = static_cast<std::uint32_t>(call.poster);
    const std::uint64_t ticket = scratch_.heads[poster];
    if (call.ticket != ticket + 1) return 0;
    return serve_ring(poster, {ticket, TaskSlotReader<Group>(group_, scratch_).look(slot(poster, ticket), ticket + 1)});
  }
  /// Serves all rings once. Returns the number of tasks that have run, or `has_failed`.
  BEELINE_HOST_DEVICE std::uint32_t serve_rings() {
    std::uint32_t ran = 0;
    for (std::uint32_t poster = first_; poster < channel_.members; poster += 2 * step_) {
      const std::uint32_t next = poster + step_ < channel_.members ? poster + step_ : poster;
      const Seen seen = look(poster, next);
      const std::uint32_t here = serve_ring(poster, seen.here);
      const bool goes_on = next != poster && here != has_failed && !is_paused();
      const std::uint32_t there = goes_on ? serve_ring(next, seen.there) : 0;
      if (here == has_failed || there == has_failed) return has_failed;
      ran += here + there;
      if (is_paused()) break;
    }
    return ran;
  }

  ///   is_call  for `serve_some`: one task, which is acknowledged later
  template <bool is_call = false>
  BEELINE_HOST_DEVICE std::uint32_t serve_ring(std::uint32_t poster, SeenWord seen) {
    const TaskSlotReader<Group> reader(group_, scratch_);
    std::uint64_t ticket = seen.ticket;
    std::uint32_t ran = 0;
    bool is_awaited = false;
    for (TaskHeader header; reader.take(slot(poster, ticket), seen.word, ran != 0, ticket + 1, header);) {
      if (!run(poster, ticket, header, is_awaited)) return has_failed;
      if (is_paused()) break;
      ++ran, ++ticket;
      if (ran == (is_call ? 1 : tasks_at_once)) break;
      seen.word = reader.look_acquiring(slot(poster, ticket), ticket + 1);
    }
    if (ran == 0) return 0;
    if (group_.thread_rank() == 0) {
      if (!is_call && is_awaited) acknowledge(poster, ticket, TaskTarget{}, 0, 0);
      scratch_.heads[poster] = ticket;
    }
    group_.sync();
    return ran;
  }

  /// Runs a task. Returns false if the team is aborted.
  ///   is_awaited  set by the first thread if the poster may wait for the acknowledgement of this task or of an earlier
  ///               task
  BEELINE_HOST_DEVICE bool run(std::uint32_t poster, std::uint64_t ticket, const TaskHeader& header, bool& is_awaited) {
    const TaskTarget target = target_of(header.function);
    const Finding found = fault_of(header, target);
    if (found.fault != CallFault::none) [[unlikely]] {
      if (group_.thread_rank() == 0)
        static_cast<void>(refuse(ctx_, Operation::task, poster, found, Status::invalid_argument));
      return false;
    }
    if (List::has_kernels && List::is_kernel(header.function)) {
      is_paused_ = !run_kernel(header, target, poster, ticket);
      if (is_paused_) return true;
    } else {
      if (group_.thread_rank() == 0) show(RunningTask::what_of(header.function, poster));
      List::run(header.function, group_, ctx_, task(header, target, poster, ticket));
    }
    group_.sync();
    if (group_.thread_rank() == 0) complete(target, poster, ticket, is_awaited);
    group_.sync();  // the next task uses the scratch memory
    return true;
  }

  /// Whether the lease has ended before the kernel for which this worker waits.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_paused() const { return List::has_kernels && is_paused_; }
  /// Requests a kernel and waits for its end. Returns false if the kernel still runs when the lease ends: the task then
  /// stays in its ring, and the next lease continues here.
  BEELINE_HOST_DEVICE bool run_kernel(const TaskHeader& header, const TaskTarget& target, std::uint32_t poster,
                                      std::uint64_t ticket) {
    TaskCall& call = service_.kernels.calls[worker_];
    const bool is_asked_for = call.ticket == ticket + 1 && call.poster == poster;
    const std::uint64_t number = call.asked + (is_asked_for ? 0 : 1);
    group_.sync();
    if (!is_asked_for) {
      for (std::uint32_t i = group_.thread_rank(); i < header.words; i += group_.size())
        call.words[i] = scratch_.words[i];
      group_.sync();
      if (group_.thread_rank() == 0) ask_for_kernel(call, number, header, task(header, target, poster, ticket), ticket);
    }
    const DeviceAtomic<std::uint64_t> ended(call.ended);
    bool has_ended = false;
    for (std::uint32_t polls = 1; !has_ended; ++polls) {
      has_ended = group_.any(group_.thread_rank() == 0 && ended.load(std::memory_order_acquire) == number);
      if (has_ended || polls % polls_of_kernel != 0) continue;
      if (group_.any(group_.thread_rank() == 0 && is_over(true))) return false;
      machine::back_off(polls, ctx_.polling);
    }
    return true;
  }
  BEELINE_HOST_DEVICE void ask_for_kernel(TaskCall& call, std::uint64_t number, const TaskHeader& header, Task it,
                                          std::uint64_t ticket) {
    show(RunningTask::what_of(header.function, it.poster));
    const TaskLayout layout{header.argument_bytes};
    it.arguments = &call.words[task_header_words];
    if (layout.holds(header.payload_bytes)) it.payload = &call.words[layout.payload_word()];
    const std::size_t place = std::size_t{header.function} * service_.workers + worker_;
    const std::uint64_t graph = service_.kernels.graphs[place * graphs_of_worker + number % graphs_of_worker];
    call.task = it, call.graph = graph, call.request = TaskCall::request_of(number, header.function);
    call.ticket = ticket + 1, call.poster = it.poster;
    DeviceAtomic<std::uint64_t>(call.asked).store(number, std::memory_order_relaxed);
    if (graph != 0) return service_.kernels.fire(call, number);
    if constexpr (executor == DeviceKind::gpu) machine::fence_system();
    service_.kernels.ask_engine(worker_, call.request);
  }

  /// The target of a function. On a host rank it may change while workers run; on a GPU it is constant during a lease.
  [[nodiscard]] BEELINE_HOST_DEVICE TaskTarget target_of(std::uint32_t function) const {
    if (function >= channel_.functions) return {};
    if constexpr (executor == DeviceKind::gpu) return targets_[function];
    const machine::PacketPair words =
        machine::load_packets(reinterpret_cast<const machine::PacketPair*>(&targets_[function]));
    return {words.low, words.high};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Finding fault_of(const TaskHeader& header, const TaskTarget& target) const {
    if (header.function >= channel_.functions) return {CallFault::no_function, channel_.functions, header.function};
    if ((target.completion & TaskTarget::registered_bit) == 0) return {CallFault::not_registered, 0, header.function};
    const std::uint32_t bytes = List::argument_bytes(header.function);
    if (header.argument_bytes != bytes) return {CallFault::wrong_arguments, bytes, header.argument_bytes};
    if (TaskLayout{bytes}.holds(header.payload_bytes)) return {CallFault::none};
    const std::uint64_t room = channel_.places[ctx_.rank * channel_.functions + header.function].payload_bytes;
    if (header.payload_bytes > room) return {CallFault::long_payload, room, header.payload_bytes};
    return {CallFault::none};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Task task(const TaskHeader& header, const TaskTarget& target, std::uint32_t poster,
                                              std::uint64_t ticket) const {
    const TaskLayout layout{header.argument_bytes};
    void* payload = &scratch_.words[layout.payload_word()];
    if (!layout.holds(header.payload_bytes)) payload = payload_of(header, poster, ticket);
    return {&scratch_.words[task_header_words],
            payload,
            header.payload_bytes,
            reinterpret_cast<void*>(target.object),
            header.argument_bytes,
            poster,
            worker_,
            channel_,
            header.reply == 0                     ? nullptr
            : scratch_.posters[poster] == nullptr ? answer_of(poster)
                                                  : reply_of(poster, header.reply)};
  }
  /// The word by which a function replies to a poster on another node.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* answer_of(std::uint32_t poster) const {
    return &channel_.tickets[channel_.ring(queue_, poster)].answer;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* reply_of(std::uint32_t poster, std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t*>(scratch_.posters[poster] + offset);
  }

  /// Acknowledges a task that has run: at once if its poster waits for this task, otherwise together with later tasks,
  /// since each acknowledgement needs a fence.
  BEELINE_HOST_DEVICE void complete(const TaskTarget& target, std::uint32_t poster, std::uint64_t ticket,
                                    bool& is_awaited) {
    show(0);
    const TaskHeader header = scratch_.header();
    const bool has_answered = executor == DeviceKind::gpu && header.reply != 0;
    std::uint64_t reply = header.reply_value == 0 ? 0 : header.reply, reply_value = header.reply_value;
    if (scratch_.posters[poster] == nullptr && header.reply != 0) [[unlikely]] {
      const SystemAtomic<std::uint64_t> answer(*answer_of(poster));
      const std::uint64_t given = answer.load(std::memory_order_relaxed);
      answer.store(0, std::memory_order_relaxed);  // the next task, a function or a kernel, finds no answer
      if (reply == 0 && given != 0) reply = header.reply, reply_value = given;
    }
    if (executor == DeviceKind::gpu && reply != 0 &&
        poster == ctx_.rank) {  // CPUs see the end of this task with the acknowledgement of later tasks
      machine::fence_device();
      store_signal(reply_of(poster, reply), header.reply_value, Order::relaxed);
      reply = 0;
    }
    const std::uint32_t most = channel_.depth / 4 < most_unacknowledged ? channel_.depth / 4 : most_unacknowledged;
    if (++scratch_.unacknowledged[poster] < most && reply == 0 && target.completion == TaskTarget::registered_bit) {
      is_awaited |= !has_answered;
      return;
    }
    is_awaited = false;
    acknowledge(poster, ticket + 1, target, reply, reply_value);
  }
  BEELINE_HOST_DEVICE void acknowledge(std::uint32_t poster, std::uint64_t done, const TaskTarget& target,
                                       std::uint64_t reply, std::uint64_t reply_value) {
    // On a GPU one fence replaces the fence of each release; on CPUs a release needs no fence.
    constexpr bool fences = executor == DeviceKind::gpu;
    constexpr auto order = fences ? std::memory_order_relaxed : std::memory_order_release;
    if constexpr (fences) machine::fence_acquire_release();
    const bool is_direct = scratch_.posters[poster] != nullptr;
    if (reply != 0 && is_direct)
      store_signal(reply_of(poster, reply), reply_value, fences ? Order::relaxed : Order::memory);
    if (target.completion > TaskTarget::registered_bit)
      SystemAtomic<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(target.completion - TaskTarget::registered_bit))
          .fetch_add(1, order);
    TaskTickets& mine = channel_.tickets[channel_.ring(queue_, ctx_.rank)];  // symmetric: the poster has its tickets at
                                                                             // the same offset
    if (is_direct)
      SystemAtomic<std::uint64_t>(*reply_of(poster, ctx_.offset_in_slot(&mine.done))).store(done, order);
    else
      static_cast<void>(
          acknowledge_by_engine(ctx_, poster, {reply, reply_value}, {ctx_.offset_in_slot(&mine.done), done}));
    head(channel_.ring(queue_, poster)).store(done, std::memory_order_relaxed);
    scratch_.unacknowledged[poster] = 0;
  }
  /// Acknowledges all tasks that have run and are not yet acknowledged.
  BEELINE_HOST_DEVICE void acknowledge_rest() {
    if (group_.thread_rank() != 0) return;
    for (std::uint32_t poster = first_; poster < channel_.members; poster += step_)
      if (scratch_.unacknowledged[poster] != 0) acknowledge(poster, scratch_.heads[poster], TaskTarget{}, 0, 0);
  }

  BEELINE_HOST_DEVICE void show(std::uint64_t what) {
    RunningTask& mine = service_.running[worker_];
    if (what != 0) SystemAtomic<std::uint64_t>(mine.begun).store(++begun_, std::memory_order_relaxed);
    // On CPUs with release order, which costs nothing there.
    constexpr auto order = executor == DeviceKind::gpu ? std::memory_order_relaxed : std::memory_order_release;
    SystemAtomic<std::uint64_t>(mine.what).store(what, order);
  }

  [[nodiscard]] BEELINE_HOST_DEVICE bool is_over([[maybe_unused]] bool has_run) const {
    if (read_abort_word(ctx_) != 0) return true;
    if constexpr (executor == DeviceKind::host) return load_acquired(*service_.closing) != 0;
    const DeviceAtomic<std::uint64_t> last_task(service_.shared->last_task);
    const std::uint64_t now = machine::clock_ns();
    if (has_run) last_task.store(now, std::memory_order_relaxed);
    const std::uint64_t last = has_run ? now : last_task.load(std::memory_order_relaxed);
    const std::uint64_t busy = last > start_ ? last : start_;
    return now - start_ >= service_.lease.lease_ns || (now > busy && now - busy >= service_.lease.idle_ns);
  }

  /// Whether this worker, whose time is over, ends now: a GPU's workers end together.
  BEELINE_HOST_DEVICE bool may_end() {
    if constexpr (executor == DeviceKind::gpu) {
      acknowledge_rest();
      const WaitingTasks waiting{&channel_.tickets[channel_.ring(0, ctx_.rank)], channel_.queues, channel_.members};
      return group_.any(group_.thread_rank() == 0 && service_.shared->end(ctx_, waiting));
    }
    return true;
  }

  /// Publishes to each poster of this node whether this rank's workers have ended.
  BEELINE_HOST_DEVICE void publish_asleep(std::uint64_t asleep) const {
    for (std::uint32_t member = group_.thread_rank(); member < channel_.members; member += group_.size()) {
      if (scratch_.posters[member] == nullptr) continue;  // its engine requests a lease behind each task
      std::uint64_t* const word = ctx_.translate(&channel_.asleep[ctx_.rank], ctx_.access_to(member).place);
      SystemAtomic<std::uint64_t>(*word).store(asleep, std::memory_order_relaxed);
    }
  }

  /// Publishes that this worker ends, then polls all rings once more, also rings of other workers. A poster first
  /// posts, then reads `asleep`. So either this worker sees the task, or the poster sees that the workers have ended,
  /// and requests a new lease.
  BEELINE_HOST_DEVICE void end() const {
    publish_asleep(1);
    machine::fence_system();
    group_.sync();
    machine::fence_system();
    bool any = false;
    const std::size_t rings = std::size_t{channel_.queues} * channel_.members;
    for (std::size_t ring = group_.thread_rank(); ring < rings; ring += group_.size()) {
      const std::uint64_t ticket = head(ring).load(std::memory_order_relaxed);
      const SignaledWord* const words = &channel_.slots[channel_.slot_index(ring, ticket) * task_words];
      any |= load_task_word(&words[task_word_position(0)], ticket + 1).signal == ticket + 1;
    }
    if (any) service_.lease.ask();
  }

  const Group& group_;
  const Context& ctx_;
  const TaskService& service_;
  TaskChannel channel_;
  const TaskTarget* const targets_;
  TaskScratch& scratch_;
  std::uint32_t worker_, queue_, first_, step_;
  std::uint32_t next_;       ///< the ring that `serve_some` polls next
  std::uint32_t looks_;      ///< number of polls of two rings in a call of `look`
  std::uint64_t begun_;      ///< number of tasks that this worker has begun in all leases
  std::uint64_t start_ = 0;  ///< start time of the lease
  bool is_paused_ = false;
};

/// One lease of the workers of a GPU. Each worker is a warp; each block has a multiprocessor of its own.
template <class List>
struct TaskKernel {
  /// Limits the registers of a thread, so that blocks of a few workers fit beside kernels that fill the device.
  static constexpr unsigned max_threads = 1024;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()([[maybe_unused]] Grid& grid, [[maybe_unused]] const Context& ctx,
                                      [[maybe_unused]] const TaskService& service) const {
#if BEELINE_ON_GPU
    __shared__ struct {
      TaskScratch scratch[most_workers_of_block];
      TaskTarget targets[List::count];
    } memory;
    for (std::uint32_t i = grid.block().thread_rank(); i < List::count; i += grid.block().size())
      memory.targets[i] = service.targets[i];
    grid.block().sync();
    const std::uint32_t warp = grid.block().thread_rank() / 32;
    const std::uint32_t worker = warp * grid.blocks() + grid.block_rank();
    if (worker >= service.workers) return;
    const Warp group;
    EveryTurn turns;
    TaskWorker<List, Warp>(group, ctx, service, memory.targets, worker, memory.scratch[warp]).serve(turns);
#endif
  }
};

}  // namespace beeline::detail
