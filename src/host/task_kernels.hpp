// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts of the tasks that are kernels, on the target rank.

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

/// Starts the kernels that the workers of a rank request: by the launch service, if the rank's GPU can launch graphs,
/// or by a host thread of this rank ("engine" below). Each worker has at most one running kernel.
class TaskKernels {
 public:
  struct Work {
    std::uint32_t functions, workers;
    std::uint64_t lease_ns, idle_ns;  ///< the launch service's
    /// Launches the kernel with number `function`.
    std::function<void(std::uint32_t function, const LaunchOptions& options, detail::TaskCall* call)> start;
    /// Name in errors of the kernel that a worker is running.
    std::function<std::string(std::uint32_t worker)> name;
  };
  /// Collective. On a GPU rank, call it while none of the rank's kernels runs. Throws no_resource if the thread cannot
  /// be made, or if waiting grids leave too small a share for the launch service.
  TaskKernels(Team& team, Work work);
  /// Collective. No worker may request a kernel any more. Waits for the running kernels, up to the deadline.
  ~TaskKernels();

  [[nodiscard]] const detail::TaskCalls& calls() const { return terms_.kernels; }
  /// Prepares the start of a kernel. While no worker runs, `adopt` makes workers use the last preparation. Throws
  /// invalid_argument for a shape that cannot be launched; unavailable if device graphs are required and refused.
  void prepare(std::uint32_t function, const TaskKernelShape& shape);
  void adopt(std::uint32_t function);
  /// What starts the kernel, and the reason for it; `any` if the kernel is not registered.
  [[nodiscard]] const TaskKernelStart& start_of(std::uint32_t function) const { return kernels_[function].start; }
  /// Adds the counts of started kernels to `sums`.
  void count(TaskStatistics& sums) const;

 private:
  struct Kernel {
    LaunchOptions shape{};
    TaskKernelStart start{};
    std::vector<std::uint64_t> graphs;  ///< [workers, graphs_of_worker]
  };
  /// A graph and a stream for a lease of the launch service; they stay in use while kernels that the lease has started
  /// run.
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<RecordedWork> lease;
  };
  /// The engine's stream for a worker, made at first use.
  struct Lent {
    std::unique_ptr<Stream> stream;
    std::uint64_t request = 0;  ///< the last request
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
  /// Starts requested kernels. Returns whether there were any.
  [[nodiscard]] bool serve();
  void start(std::uint32_t worker, std::uint64_t request);
  void drain(Stream& stream) const;

  Team& team_;
  const Work work_;
  const int poll_us_;
  SymmetricArray<detail::TaskCall> call_states_;  ///< [workers + 1] the last one is for the trial
  SymmetricArray<std::uint64_t> graphs_, asleep_, requests_, over_;
  SymmetricArray<LaunchCounts> counts_;
  Bell bell_;
  LaunchServiceTerms terms_;
  std::vector<Kernel> kernels_;  ///< [functions]
  Kernel prepared_;
  std::vector<std::unique_ptr<RecordedWork>> recorded_;  ///< of all registrations, since earlier kernels may still run
  std::string why_no_graphs_;                            ///< empty if the device launches graphs
  std::vector<Lane> lanes_;
  std::size_t lane_ = 0;  ///< of the current lease
  std::uint64_t leases_begun_ = 0;
  std::unique_ptr<LeasedGrid> service_;
  std::vector<Lent> lent_;  ///< [workers]
  std::atomic<std::uint64_t> by_engine_{0};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace beeline
