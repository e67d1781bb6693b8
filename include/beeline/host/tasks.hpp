// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Queues of active messages (control/task.hpp, docs/tasks.md), and the workers that run them.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "beeline/control/run_tasks.hpp"
#include "beeline/host/launch.hpp"
#include "beeline/host/team.hpp"

namespace beeline {

class LeasedGrid;
class TaskKernels;

/// Shape of `Tasks`: the same on all members, but for workers, threads and times.
struct TaskOptions {
  std::uint32_t queues = 2;  ///< a task may wait for free cells only in queues with lower numbers than its own
  std::uint32_t depth = 64;  ///< tasks of one poster in a queue at most; a power of two
  /// Number of workers (warps on a GPU, threads on a host rank), a multiple of `queues`. At most 8 if the list has
  /// kernels, since each worker waits for the end of its kernel.
  std::uint32_t workers = 2;
  std::uint32_t multiprocessors = 1;  ///< GPU: largest number that the workers use, 16 workers on each
  std::int64_t lease_ns = 2'000'000;  ///< GPU: longest run of the workers' grid
  std::int64_t idle_ns = 200'000;     ///< GPU: the grid ends earlier after this time without a task; the next post
                                      ///< starts it
};

/// A function's registration on one rank; addresses and sizes may differ from rank to rank.
struct TaskRegistration {
  void* object = nullptr;         ///< `Task::object`
  void* payloads = nullptr;       ///< [payload_bytes] symmetric address, aligned to 16 bytes; nullptr: no payloads
  std::size_t payload_bytes = 0;  ///< size of the whole buffer: see `TaskQueues::payload_buffer_bytes`
  std::uint64_t* completion = nullptr;  ///< a word of this rank that counts the tasks of the function that have run
};

/// What starts the kernel of a task.
enum class KernelStarter : std::uint8_t {
  any,           ///< a device graph if the rank's GPU can launch device graphs, otherwise the engine
  device_graph,  ///< the GPU itself; the CPU only renews the launch service's lease
  engine         ///< a CPU thread of the rank; always used on host ranks
};

/// The grid of a registered kernel, the same for all its tasks. It cannot be a waiting grid: its threads must not wait
/// for other ranks' kernels, nor for each other by `grid.sync`.
struct TaskKernelShape {
  unsigned blocks = 1;
  unsigned threads = 256;  ///< threads of a block, as in LaunchOptions
  KernelStarter start = KernelStarter::any;
};

/// How the kernel of a function is started on this rank.
struct TaskKernelStart {
  KernelStarter by = KernelStarter::any;  ///< `any`: the function is not registered
  std::string reason;                     ///< why the engine starts the kernel; empty if a device graph starts it
};

/// Counts of a rank's workers, and of the launches of kernels for their tasks.
struct TaskStatistics {
  std::uint64_t leases = 0;             ///< leases of the workers (GPU)
  std::uint64_t launch_leases = 0;      ///< leases of the launch service, which starts device graphs
  std::uint64_t kernels_by_graph = 0;   ///< kernels that the GPU has started
  std::uint64_t kernels_by_engine = 0;  ///< kernels that the engine's thread has started
  std::uint64_t handed_kernels = 0;     ///< kernels of `kernels_by_engine` whose graph the GPU refused for 1 ms
  std::uint64_t refused_launches = 0;   ///< launches that were repeated because the GPU refused them
};

/// The part of `Tasks` that does not depend on the task list.
class TaskQueues {
 public:
  TaskQueues(const TaskQueues&) = delete;
  TaskQueues& operator=(const TaskQueues&) = delete;

  /// The channel for kernels; pass it by value. On a host rank CPU threads may use it too, with `Thread{}` and
  /// `Team::host_context()`.
  [[nodiscard]] const TaskChannel& channel() const { return channel_; }
  /// Bytes of a buffer for payloads of up to `bytes_of_one`: room for one payload of each task that may be in flight.
  [[nodiscard]] std::size_t payload_buffer_bytes(std::size_t bytes_of_one) const;

  /// Collective. Registers the function with this index on this rank, before any rank posts a task of it. Throws
  /// invalid_argument on all members, with the rank at fault, for an index that is not in the list, or a buffer that is
  /// not symmetric memory of the rank, not aligned, or too small for 16 bytes for each task.
  void register_function(std::uint32_t function, const TaskRegistration& what);
  /// Collective. As `register_function`, for a function that is a kernel. The shape of its grid may differ from rank to
  /// rank. Throws invalid_argument, too, if the function is no kernel, or if its grid cannot be launched; unavailable
  /// on all members if a member requests a device graph that its GPU or driver refuses: the error of this member gives
  /// the reason.
  void register_kernel(std::uint32_t function, const TaskRegistration& what, const TaskKernelShape& shape);
  /// What starts the kernels of a registered function on this rank.
  [[nodiscard]] TaskKernelStart kernel_start(std::uint32_t function) const;
  [[nodiscard]] TaskStatistics statistics() const;
  /// Ends the function's registration on this rank; the registered memory may then be freed. Later tasks of the
  /// function are refused here, which aborts the team, so call `quiet` first. On a GPU rank this waits, as
  /// `register_function` does, for the end of the workers' lease.
  void unregister_function(std::uint32_t function);
  /// Collective. Blocks until all tasks that any member has posted have run, those posted by tasks included; no kernel
  /// may be posting. Throws deadline if no more tasks end, and aborted.
  void quiet();
  /// Number of leases of this rank's workers (GPU): how often the host has started them.
  [[nodiscard]] std::uint64_t leases() const;

 protected:
  /// Properties and functions of the task list.
  struct List {
    std::uint32_t functions;
    std::uint64_t hash;
    const char* (*name)(std::uint32_t function);
    unsigned (*blocks_of_multiprocessor)(World& world, unsigned threads);
    void (*start)(Team& team, const LaunchOptions& options, const detail::TaskService& service);
    std::shared_ptr<void> (*worker)(const Context& ctx, const detail::TaskService& service, std::uint32_t worker);
    void (*serve)(void* worker);
    bool has_kernels;
    bool (*is_kernel)(std::uint32_t function);
    void (*start_kernel)(Team& team, std::uint32_t function, const LaunchOptions& options, detail::TaskCall* call);
  };
  /// Collective.
  TaskQueues(Team& team, const TaskOptions& options, const List& list);
  ~TaskQueues();

  Team& team() const { return team_; }
  /// [workers] the workers of a host rank; empty on a GPU rank.
  [[nodiscard]] const std::vector<void*>& workers() const { return workers_; }

 private:
  void check_alike() const;
  [[nodiscard]] bool is_whole() const;
  void make_kernels();
  void start_workers();
  void end_workers();
  void start_lease(Stream& stream, const Lease& lease);
  void serve_on_host(std::uint32_t worker);
  void watch_host();
  void write(TaskTarget& target, const TaskTarget& value);
  /// Calls `change` while no worker of a GPU reads its tables.
  void between_leases(const std::function<void()>& change);
  /// `register_function` for a function of either kind.
  ///   status, fault  the fault that this rank found in `what`; ok and empty if it found none
  void announce(std::uint32_t function, const TaskRegistration& what, Status status, std::string fault, bool is_kernel);
  [[nodiscard]] std::string name_of_task(std::uint32_t worker) const;
  ///   what  function and poster, encoded as in `RunningTask`
  [[nodiscard]] std::string text_of_task(std::uint64_t what) const;
  [[nodiscard]] std::size_t places_of_payloads() const;
  [[nodiscard]] TaskPlace place_of(const TaskRegistration& what, std::string& fault) const;
  struct Totals {
    std::uint64_t posted = 0, done = 0;
    bool operator==(const Totals&) const = default;
  };
  /// Totals of this rank's posts.
  struct Sums : Totals {
    std::vector<std::uint64_t> pending;  ///< [members] tasks posted to each member that are not known to have run
  };
  [[nodiscard]] Sums count() const;
  /// Aborts the team if a worker has been in the same task for as long as the deadline.
  void look_for_stuck_tasks();

  Team& team_;
  const std::shared_ptr<const detail::TeamLife> life_;
  const TaskOptions options_;
  const List list_;
  SymmetricArray<SignaledWord> slots_;
  SymmetricArray<TaskTickets> tickets_;
  SymmetricArray<TaskPlace> places_;
  SymmetricArray<TaskTarget> targets_;
  SymmetricArray<std::uint64_t> heads_, asleep_;
  SymmetricArray<detail::TaskLease> lease_;
  SymmetricArray<RunningTask> running_;
  std::optional<SymmetricArray<SignaledWord>> copies_;  ///< see TaskChannel
  TaskChannel channel_;
  detail::TaskService service_;
  std::uint64_t closing_ = 0;
  struct Seen {
    std::uint64_t begun = 0, at_ns = 0;
  };
  std::vector<Seen> seen_;  ///< [workers] the task of each worker at the latest check, and when it was first seen
  bool has_given_up_ = false;
  std::unique_ptr<TaskKernels> kernels_;  ///< for lists that have kernels; otherwise nullptr
  std::unique_ptr<LeasedGrid> grid_;      ///< the workers of a GPU rank; otherwise nullptr
  std::vector<std::shared_ptr<void>> owned_workers_;
  std::vector<void*> workers_;
  std::vector<std::thread> threads_;  ///< the workers of a host rank, and a thread that watches them
};

namespace detail {

/// Posts one task from a kernel of its own.
template <class List, class Function>
struct PostTask {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, TaskChannel channel,
                                      const typename Function::Arguments& arguments, std::uint32_t rank,
                                      std::uint32_t queue) const {
    static_cast<void>(post_task(grid.block(), ctx, channel, task_of<List, Function>(arguments, rank, queue)));
  }
};

}  // namespace detail

/// Active messages among the members of a team that run the functions of `Functions`, a `TaskList`.
///
/// On a GPU rank the workers are the warps of a small grid, with one block on each of at most `multiprocessors`. Room
/// for this grid on the device is reserved while the object exists. The grid runs for leases of `lease_ns`, and ends
/// when it is idle; a host thread starts it again. So calls that wait for the whole device, and kernels that fill the
/// device, can proceed. If a task does not return by the deadline, the team is aborted with an error that names
/// function and poster; a task that loops for ever ends with its process.
template <class Functions>
class Tasks : public TaskQueues {
 public:
  /// Collective. On a GPU rank make it while none of its kernels runs. Throws invalid_argument if members have
  /// different lists or options (the error names two members), or for invalid options; unavailable for a team with GPU
  /// ranks and host ranks, or with more than 64 members; unreachable if neither loads and stores nor the engine reach a
  /// member; no_resource if waiting grids leave no room for the workers; otherwise the same as `Team::allocate`.
  explicit Tasks(Team& team, const TaskOptions& options = {})
      : TaskQueues(team, options,
                   {Functions::count, Functions::hash(), &Functions::name, &room, &start, &worker, &serve,
                    Functions::has_kernels, &Functions::is_kernel, &start_kernel}) {}
  /// Collective. Kernels that post must have ended. Waits until all posted tasks have run, as `quiet`; not if a member
  /// was lost.
  ~Tasks() = default;

  using TaskQueues::register_function;
  template <class Function>
  void register_function(const TaskRegistration& what) {
    register_function(Functions::template index_of<Function>(), what);
  }

  using TaskQueues::register_kernel;
  template <class Function>
  void register_kernel(const TaskRegistration& what, const TaskKernelShape& shape) {
    register_kernel(Functions::template index_of<Function>(), what, shape);
  }
  using TaskQueues::kernel_start;
  template <class Function>
  [[nodiscard]] TaskKernelStart kernel_start() const {
    return kernel_start(Functions::template index_of<Function>());
  }

  /// Posts a task from host code, by a kernel on a stream of this rank (nullptr: the default stream). Host code of a
  /// GPU rank can post only in this way.
  template <class Function>
  void post(const typename Function::Arguments& arguments, int rank, std::uint32_t queue = 0,
            Stream* stream = nullptr) {
    launch(team(), {.threads = 32, .waits = true, .stream = stream, .name = "post_task"},
           detail::PostTask<Functions, Function>{}, channel(), arguments, static_cast<std::uint32_t>(rank), queue);
  }

  /// The workers of this rank, for threads of a host rank that run tasks themselves (control/run_tasks.hpp). Valid
  /// until this object is destroyed. Not for lists that have kernels.
  [[nodiscard]] TaskRunner<Functions> runner() const {
    static_assert(!Functions::has_kernels, "kernels run on threads of their own");
    return {workers().data(), static_cast<std::uint32_t>(workers().size())};
  }

 private:
  using Kernel = detail::TaskKernel<Functions>;
  static unsigned room(World& world, unsigned threads) {
    return detail::blocks_of_multiprocessor<Kernel, detail::TaskService>(world, threads);
  }
  static void start(Team& team, const LaunchOptions& options, const detail::TaskService& service) {
    launch(team, options, Kernel{}, service);
  }
  static void start_kernel(Team& team, std::uint32_t function, const LaunchOptions& options, detail::TaskCall* call) {
    Functions::visit(function, [&]<class Function>(const Function*) {
      if constexpr (detail::is_task_kernel<Function>()) {
        LaunchOptions named = options;
        named.name = Function::name;
        launch(team, named, detail::TaskGrid<Function>{}, call);
      }
    });
  }
  using Worker = detail::SharedTaskWorker<Functions>;
  static std::shared_ptr<void> worker(const Context& ctx, const detail::TaskService& service, std::uint32_t worker) {
    return std::make_shared<Worker>(ctx, service, worker);
  }
  static void serve(void* worker) { static_cast<Worker*>(worker)->serve(); }
};

}  // namespace beeline
