// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The target's side of tasks that are kernels: what starts them.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "beeline/control/impl/task_kernel.hpp"
#include "beeline/host/tasks.hpp"
#include "control/engine_thread.hpp"
#include "host/launch_service.hpp"
#include "host/leased_grid.hpp"
#include "transport/recorded_work.hpp"

namespace beeline {

/// Starts the kernels that the workers of a rank ask for: by the launch service, where the rank's GPU launches graphs,
/// or by a thread of the rank's own, the engine's. Each worker has one kernel that runs, at most.
class TaskKernels {
 public:
  struct Work {
    std::uint32_t functions, workers;
    std::uint64_t lease_ns, idle_ns;  ///< of the launch service
    /// Launches a kernel of the list.
    std::function<void(std::uint32_t function, const LaunchOptions& options, detail::TaskCall* call)> start;
    /// What errors call the kernel that a worker is in.
    std::function<std::string(std::uint32_t worker)> name;
  };
  /// Collective. On a GPU rank make it while none of its kernels runs. Throws no_resource for the thread, or if waiting
  /// grids leave no room for the launch service.
  TaskKernels(Team& team, Work work);
  /// Collective. No worker asks for a kernel any more. Waits for those that run, up to the deadline.
  ~TaskKernels();

  [[nodiscard]] const detail::TaskCalls& calls() const { return terms_.kernels; }
  /// Prepares the start of a kernel. `adopt` makes workers go by what was prepared last, when none of them runs. Throws
  /// invalid_argument for a shape that cannot be launched; unavailable if device graphs are asked for and refused.
  void prepare(std::uint32_t function, const TaskKernelShape& shape);
  void adopt(std::uint32_t function);
  /// What starts the kernel, and why that does; `any` if it is not registered.
  [[nodiscard]] const TaskKernelStart& start_of(std::uint32_t function) const { return kernels_[function].start; }
  /// Adds what has been started.
  void count(TaskStatistics& sums) const;

 private:
  struct Kernel {
    LaunchOptions shape{};
    TaskKernelStart start{};
    std::vector<std::uint64_t> graphs;  ///< [workers, graphs_of_worker]
  };
  /// What the launch service runs in: while kernels that it has started run, its graph and its stream are taken.
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<RecordedWork> lease;
  };
  /// The engine's stream of a worker, made when it is needed first.
  struct Lent {
    std::unique_ptr<Stream> stream;
    std::uint64_t request = 0;  ///< the last
    bool is_busy = false;
  };

  [[nodiscard]] bool is_gpu() const { return team_.world().device().is_gpu(); }
  void make_service();
  [[nodiscard]] std::string try_graphs();
  void start_lease(const Lease& lease);
  void add_lane();
  [[nodiscard]] bool is_lease_over();
  void record_graphs(std::uint32_t function, Kernel& kernel);
  void check_shape(std::uint32_t function, const Kernel& kernel);
  void run();
  /// Whether there was anything to start, or is to be looked at.
  [[nodiscard]] bool serve();
  void start(std::uint32_t worker, std::uint64_t request);
  void drain(Stream& stream) const;

  Team& team_;
  const Work work_;
  const int poll_us_;
  SymmetricArray<detail::TaskCall> call_states_;  ///< [workers + 1]: the last is for the trial
  SymmetricArray<std::uint64_t> graphs_, asleep_, requests_, over_;
  SymmetricArray<LaunchCounts> counts_;
  Bell bell_;
  LaunchServiceTerms terms_;
  std::vector<Kernel> kernels_;  ///< [functions]
  Kernel prepared_;
  std::vector<std::unique_ptr<RecordedWork>> recorded_;  ///< of all registrations: kernels may still run
  std::string why_no_graphs_;                            ///< empty: the device launches graphs
  std::vector<Lane> lanes_;
  std::size_t lane_ = 0;  ///< of the lease that runs
  std::uint64_t leases_begun_ = 0;
  std::unique_ptr<LeasedGrid> service_;
  std::vector<Lent> lent_;  ///< [workers]
  std::atomic<std::uint64_t> by_engine_{0};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace beeline
