// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/tasks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/exception_text.hpp"
#include "core/thread.hpp"
#include "host/leased_grid.hpp"
#include "host/task_kernels.hpp"
#include "host/world/exchange.hpp"
#include "host/world/failures.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"

namespace beeline {

namespace {

constexpr std::uint32_t most_queues = 64, most_depth = 4096, most_workers = 1024;
constexpr unsigned warp_threads = 32;
/// Time between two checks of the running tasks.
constexpr std::chrono::milliseconds task_watch_period(20);
/// Time beyond the deadline that a wait for all tasks leaves to the ranks that watch their tasks.
constexpr std::uint64_t quiet_margin_ns = 200'000'000;
/// Task number that no worker reaches.
constexpr std::uint64_t no_task = ~std::uint64_t{0};

template <class T>
detail::SystemAtomic<T> shared(const T& word) {
  return detail::SystemAtomic<T>(const_cast<T&>(word));
}

/// Throws if options or team are invalid. Returns `count`.
std::size_t checked(const Team& team, const TaskOptions& options, std::size_t count) {
  const Routes& routes = world_part<Routes>(team.world());
  const std::uint64_t room = std::uint64_t{options.multiprocessors} * detail::most_workers_of_block;
  require(
      options.queues > 0 && options.queues <= most_queues && std::has_single_bit(options.depth) &&
          options.depth <= most_depth && options.workers > 0 && options.workers % options.queues == 0 &&
          options.workers <= most_workers && options.workers <= room && options.lease_ns > 0 && options.idle_ns > 0,
      Status::invalid_argument,
      fmt::format("tasks: {} queues (1 to {}), depth {} (a power of two, at most {}), {} workers (a multiple of the "
                  "queues, up to {} on each of {} multiprocessors), leases of {} ns, idle after {} ns",
                  options.queues, most_queues, options.depth, most_depth, options.workers,
                  detail::most_workers_of_block, options.multiprocessors, options.lease_ns, options.idle_ns));
  require(!team.context().mixed, Status::unavailable,
          "tasks: a team of GPU ranks and host ranks: its members cannot store in each other's memory");
  require(static_cast<std::uint32_t>(team.size()) <= max_node_ranks, Status::unavailable,
          fmt::format("tasks: a team of {} members; at most {}", team.size(), max_node_ranks));
  static_cast<void>(routes.to_members(team, "a queue of tasks"));
  for (int member = 0; routes.needs_engine(team) && member < team.size(); ++member)
    require(team.context().access_to(static_cast<std::uint32_t>(member)).access != PeerAccess::refused,
            Status::unreachable,
            fmt::format("tasks: rank {} does not reach rank {}: {}", team.world().rank(), team.world_rank(member),
                        routes.why_not_direct(team.world_rank(member))));
  return count;
}

/// Memory for tasks to members on other nodes: host memory, from which the network sends without a copy by the GPU.
std::optional<SymmetricArray<SignaledWord>> copies_of(Team& team, std::size_t words) {
  if (!world_part<Routes>(team.world()).needs_engine(team)) return std::nullopt;
  const Heap heap = team.world().device().is_gpu() ? Heap::pinned : Heap::symmetric;
  return std::optional<SymmetricArray<SignaledWord>>(std::in_place, team, words, heap);
}

/// The grid of a GPU's workers: one block for each multiprocessor that they may use.
LaunchOptions shape_of(const TaskOptions& options) {
  const unsigned blocks = std::min(options.multiprocessors, options.workers);
  return {.blocks = blocks, .threads = warp_threads * ((options.workers + blocks - 1) / blocks), .name = "tasks"};
}

/// The properties that members compare.
struct TaskShape {
  std::uint64_t hash;
  std::uint32_t functions, queues, depth;
  char names[92];  ///< the functions' names, truncated

  [[nodiscard]] bool is_like(const TaskShape& other) const {
    return hash == other.hash && functions == other.functions && queues == other.queues && depth == other.depth;
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} queues of depth {} for functions {}", queues, depth, names);
  }
};
static_assert(sizeof(TaskShape) <= Team::max_gathered_bytes);

}  // namespace

TaskQueues::TaskQueues(Team& team, const TaskOptions& options, const List& list)
    : team_(team), life_(team.life()), options_(options), list_(list),
      slots_(team,
             checked(team, options,
                     std::size_t{options.queues} * static_cast<std::size_t>(team.size()) * options.depth * task_words)),
      tickets_(team, std::size_t{options.queues} * static_cast<std::size_t>(team.size())),
      places_(team, static_cast<std::size_t>(team.size()) * list.functions), targets_(team, list.functions),
      heads_(team, tickets_.count()), asleep_(team, static_cast<std::size_t>(team.size())), lease_(team, 1),
      running_(team, most_workers),
      copies_(copies_of(team, slots_.count())), channel_{.slots = slots_.data(),
                                                         .copies = copies_ ? copies_->data() : nullptr,
                                                         .tickets = tickets_.data(),
                                                         .places = places_.data(),
                                                         .asleep = asleep_.data(),
                                                         .wanted = nullptr,
                                                         .queues = options.queues,
                                                         .members = static_cast<std::uint32_t>(team.size()),
                                                         .depth = options.depth,
                                                         .functions = list.functions,
                                                         .running = outside_tasks},
      service_{.channel = channel_,
               .targets = targets_.data(),
               .heads = heads_.data(),
               .running = running_.data(),
               .shared = lease_.data(),
               .closing = &closing_,
               .workers = options.workers,
               .lease = {},
               .kernels = {}},
      seen_(options.workers) {
  check_alike();
  if (list.has_kernels) make_kernels();
  start_workers();
}

TaskQueues::~TaskQueues() {
  if (!life_->is_usable()) {
    static_cast<void>(kernels_.release());
    static_cast<void>(grid_.release());
    static_cast<void>(new std::vector<std::thread>(std::move(threads_)));  // threads still run, or are the parent's
    return;
  }
  try {
    if (!team_.world().failed() && !team_.failed() && is_whole()) quiet();
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("tasks end: {}", error.what()), team_.world().rank());
  }
  end_workers();
}

/// Whether all members are healthy. The others may go on without a lost member, but a wait for its tasks would not end.
bool TaskQueues::is_whole() const {
  const std::vector<RankHealth> health = team_.world().health();
  for (int member = 0; member < team_.size(); ++member)
    if (health[static_cast<std::size_t>(team_.world_rank(member))].state != RankState::healthy) return false;
  return true;
}

/// Throws if members have different functions, or different queues.
void TaskQueues::check_alike() const {
  TaskShape mine{list_.hash, list_.functions, options_.queues, options_.depth, {}};
  std::string names;
  for (std::uint32_t i = 0; i < list_.functions; ++i) names += fmt::format("{}{}", i == 0 ? "" : ", ", list_.name(i));
  names.copy(mine.names, sizeof mine.names - 1);
  const auto all = detail::values_in(team_, "tasks", mine);
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (!all[0] || !all[i] || all[i]->is_like(*all[0])) continue;
    throw Error(
        Status::invalid_argument,
        fmt::format("tasks: rank {} has {}, rank {} has {}: names, sizes of arguments and their order are the "
                    "same on all ranks",
                    team_.world_rank(0), all[0]->text(), team_.world_rank(static_cast<int>(i)), all[i]->text()));
  }
}

void TaskQueues::make_kernels() {
  require(options_.workers <= detail::most_kernel_workers, Status::invalid_argument,
          fmt::format("tasks: {} workers of a list with kernels; at most {}", options_.workers,
                      detail::most_kernel_workers));
  kernels_ = std::make_unique<TaskKernels>(
      team_,
      TaskKernels::Work{.functions = list_.functions,
                        .workers = options_.workers,
                        .lease_ns = static_cast<std::uint64_t>(options_.lease_ns),
                        .idle_ns = static_cast<std::uint64_t>(options_.idle_ns),
                        .start = [this](std::uint32_t function, const LaunchOptions& options,
                                        detail::TaskCall* call) { list_.start_kernel(team_, function, options, call); },
                        .name = [this](std::uint32_t worker) { return name_of_task(worker); }});
  service_.kernels = kernels_->calls();
}

void TaskQueues::start_workers() {
  World& world = team_.world();
  if (world.device().is_gpu()) {
    const LaunchOptions shape = shape_of(options_);
    grid_ = std::make_unique<LeasedGrid>(
        team_, LeasedGrid::Work{.name = fmt::format("workers of tasks ({} blocks)", shape.blocks),
                                .room = room_for(shape.blocks, list_.blocks_of_multiprocessor(world, shape.threads),
                                                 world.device().multiprocessors),
                                .start = [this](Stream& stream, const Lease& lease) { start_lease(stream, lease); },
                                .meanwhile = [this] { look_for_stuck_tasks(); },
                                .goes_on = list_.has_kernels,
                                .lease_ns = static_cast<std::uint64_t>(options_.lease_ns),
                                .idle_ns = static_cast<std::uint64_t>(options_.idle_ns)});
    channel_.wanted = grid_->terms().wanted;
    return;
  }
  Context ctx = team_.context();
  ctx.resident = true;
  for (std::uint32_t worker = 0; worker < options_.workers; ++worker) {
    owned_workers_.push_back(list_.worker(ctx, service_, worker));
    workers_.push_back(owned_workers_.back().get());
  }
  try {
    for (std::uint32_t worker = 0; worker < options_.workers; ++worker)
      threads_.emplace_back([this, worker] { serve_on_host(worker); });
    threads_.emplace_back([this] { watch_host(); });
  } catch (const std::system_error& error) {
    const std::size_t started = threads_.size();
    end_workers();
    detail::refuse_thread(
        fmt::format("{} workers of tasks and their watch, of which {} started", options_.workers, started), error);
  }
}

void TaskQueues::end_workers() {
  grid_.reset();
  shared(closing_).store(1, std::memory_order_release);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  kernels_.reset();
}

std::uint64_t TaskQueues::leases() const { return grid_ == nullptr ? 0 : grid_->leases(); }

void TaskQueues::start_lease(Stream& stream, const Lease& lease) {
  // Tasks of an earlier lease ended with it, except kernels.
  if (!list_.has_kernels) std::fill(seen_.begin(), seen_.end(), Seen{.begun = no_task, .at_ns = 0});
  detail::TaskService service = service_;
  service.channel.wanted = lease.wanted, service.lease = lease;
  LaunchOptions shape = shape_of(options_);
  shape.stream = &stream;
  list_.start(team_, shape, service);
}

void TaskQueues::serve_on_host(std::uint32_t worker) {
  try {
    list_.serve(workers_[worker]);
  } catch (...) {  // of any type, since the task's function is user code
    team_.give_up(fmt::format("{}: {}", name_of_task(worker), detail::current_exception_text()));
  }
}

std::string TaskQueues::name_of_task(std::uint32_t worker) const {
  std::uint64_t what = 0;
  if (team_.world().device().is_gpu())
    team_.world().copy(&what, &running_.data()[worker].what, sizeof what);
  else
    what = shared(running_.data()[worker].what).load(std::memory_order_acquire);
  return what == 0 ? "a task" : text_of_task(what);
}

std::string TaskQueues::text_of_task(std::uint64_t what) const {
  return fmt::format("a task of function '{}', posted by rank {}", list_.name(RunningTask::function_of(what)),
                     team_.world_rank(static_cast<int>(RunningTask::poster_of(what))));
}

void TaskQueues::watch_host() {
  while (shared(closing_).load(std::memory_order_acquire) == 0) {
    look_for_stuck_tasks();
    std::this_thread::sleep_for(task_watch_period);
  }
}

/// Called also after the deadline of another wait, which may have begun with the task: this rank then knows the cause.
void TaskQueues::look_for_stuck_tasks() {
  if (has_given_up_) return;
  const std::uint64_t deadline_ns = team_.context().deadline_ns;
  std::uint64_t least_ns = deadline_ns;
  if (team_.failed()) {
    if (!world_part<Failures>(team_.world()).cause_of_abort(team_.context().team).text.empty()) return;
    least_ns = deadline_ns - deadline_ns / 4;
  }
  std::vector<RunningTask> running(options_.workers);
  if (team_.world().device().is_gpu())
    team_.world().copy(running.data(), running_.data(), running.size() * sizeof(RunningTask));
  const std::uint64_t now = machine::clock_ns();
  for (std::uint32_t worker = 0; worker < options_.workers; ++worker) {
    RunningTask& task = running[worker];
    if (!team_.world().device().is_gpu()) {
      const RunningTask& live = running_.data()[worker];
      // A worker counts a task before it publishes the function, so no task is mistaken for the previous one.
      task.what = shared(live.what).load(std::memory_order_acquire);
      task.begun = shared(live.begun).load(std::memory_order_relaxed);
    }
    Seen& seen = seen_[worker];
    if (task.what == 0 || task.begun != seen.begun) seen = {task.begun, now};
    if (now - seen.at_ns < least_ns || has_given_up_) continue;
    has_given_up_ = true;
    team_.give_up(text_of_task(task.what) + ", has not returned by the deadline");
  }
}

TaskKernelStart TaskQueues::kernel_start(std::uint32_t function) const {
  require(function < list_.functions, Status::invalid_argument,
          describe(CallFault::no_function, list_.functions, function));
  return kernels_ == nullptr ? TaskKernelStart{} : kernels_->start_of(function);
}

TaskStatistics TaskQueues::statistics() const {
  TaskStatistics sums;
  sums.leases = leases();
  if (kernels_ != nullptr) kernels_->count(sums);
  return sums;
}

void TaskQueues::between_leases(const std::function<void()>& change) {
  if (grid_ != nullptr)
    grid_->between_leases(change);
  else
    change();
}

/// A GPU's workers read the table when a lease begins; a host rank's workers may read both words at any time.
void TaskQueues::write(TaskTarget& target, const TaskTarget& value) {
  if (grid_ != nullptr) return between_leases([&] { team_.world().copy(&target, &value, sizeof target); });
  shared(target.object).store(value.object, std::memory_order_relaxed);
  shared(target.completion).store(value.completion, std::memory_order_relaxed);
}

TaskQueues::Sums TaskQueues::count() const {
  std::vector<TaskTickets> tickets(tickets_.count());
  const bool is_gpu = team_.world().device().is_gpu();
  if (is_gpu) team_.world().copy(tickets.data(), tickets_.data(), tickets_.bytes());
  Sums sums;
  sums.pending.resize(static_cast<std::size_t>(team_.size()));
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const TaskTickets& live = is_gpu ? tickets[i] : tickets_.data()[i];
    const std::uint64_t done = detail::load_acquired(live.done), posted = detail::load_acquired(live.next);
    sums.done += done, sums.posted += posted;
    sums.pending[i % sums.pending.size()] += posted - done;
  }
  return sums;
}

/// Waits until two consecutive rounds find equal numbers of posted and completed tasks, unchanged between the rounds
/// (Mattern's four-counter method).
void TaskQueues::quiet() {
  Totals last;
  std::uint64_t changed = machine::clock_ns();
  for (bool is_first = true;; is_first = false) {
    const Sums mine = count();
    const Totals all{team_.allreduce(mine.posted), team_.allreduce(mine.done)};
    if (!is_first && all == last && all.posted == all.done) return;
    const std::uint64_t now = machine::clock_ns();
    if (is_first || all != last) changed = now;
    // The margin lets the rank whose task does not return report it first.
    if (now - changed > team_.context().deadline_ns + quiet_margin_ns) {
      std::string text = fmt::format("tasks: {} were posted, {} are known to have run, and no more by the deadline",
                                     all.posted, all.done);
      for (std::size_t member = 0; member < mine.pending.size(); ++member)
        if (mine.pending[member] != 0)
          text += fmt::format("; rank {} waits for {} that it posted to rank {}", team_.world().rank(),
                              mine.pending[member], team_.world_rank(static_cast<int>(member)));
      team_.give_up(text);
      throw Error(Status::deadline, text);
    }
    last = all;
    if (all.posted != all.done) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace beeline
