// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Functions of a task list that are kernels: a worker writes the task into its *call*, and a grid of the target runs
/// the task. The grid is started by the launch service (src/host/launch_service.hpp), as a graph that the GPU launches
/// itself, or by a thread of the target's CPU.

#include <cstdint>

#include "beeline/control/impl/lease.hpp"
#include "beeline/control/task.hpp"

namespace beeline::detail {

/// Largest number of workers for a task list with kernels: each worker runs one kernel at a time, on its own stream.
inline constexpr std::uint32_t most_kernel_workers = 8;
/// Number of graphs of a kernel for each worker, which uses them in turn. A graph cannot be launched while it runs, and
/// it runs a little longer than its kernel.
inline constexpr std::uint32_t graphs_of_worker = 2;

/// A worker's request for a kernel. In the target's memory, one for each worker, written by the worker.
struct TaskCall {
  Task task;              ///< arguments, and a payload from the slot, are in `words`
  std::uint64_t graph;    ///< the graph that the launch service launches
  std::uint64_t request;  ///< the worker's request if the engine starts the kernel: see `request_of`
  std::uint64_t ticket;   ///< ticket of the task in its ring, + 1
  std::uint64_t poster;
  alignas(task_alignment) std::uint64_t words[task_words];
  alignas(64) std::uint64_t asked;    ///< number of kernels that the worker has requested
  alignas(64) std::uint64_t fired;    ///< number of the last kernel that the launch service has to start; stored last
  alignas(64) std::uint64_t ended;    ///< number of kernels that have ended; written by the kernel's last block
  std::uint32_t ended_blocks;         ///< number of blocks of the running kernel that have ended
  alignas(64) std::uint64_t started;  ///< last value of `fired` for which the launch service has started the kernel;
                                      ///< written by the service

  [[nodiscard]] static BEELINE_HOST_DEVICE constexpr std::uint64_t request_of(std::uint64_t number,
                                                                              std::uint32_t function) {
    return number << 32 | (std::uint64_t{function} + 1);
  }
  [[nodiscard]] static constexpr std::uint32_t function_of(std::uint64_t request) {
    return static_cast<std::uint32_t>(request) - 1;
  }
};
static_assert(std::is_trivially_copyable_v<TaskCall>);

/// The data by which workers request kernels.
struct TaskCalls {
  TaskCall* calls;              ///< [workers]
  const std::uint64_t* graphs;  ///< [functions, workers, graphs_of_worker] 0: the engine starts the kernel
  std::uint64_t* requests;      ///< [workers] requests to the engine, in host memory
  std::uint64_t* asleep;        ///< whether the launch service has ended; in the target's memory
  Lease service;                ///< lease of the launch service
  Lease engine;                 ///< has the mark by which the engine's thread is woken

  /// Makes the engine start the kernel. One thread calls it, after a fence towards the host.
  BEELINE_HOST_DEVICE void ask_engine(std::uint32_t worker, std::uint64_t request) const {
    SystemAtomic<std::uint64_t>(requests[worker]).store(request, std::memory_order_release);
    if constexpr (executor == DeviceKind::host) wake_engine(engine.asleep_mark);
  }
  /// Makes the launch service start the kernel. The fence pairs with the fence of a service that ends: either this
  /// thread sees that the service sleeps, or the service sees the call.
  BEELINE_HOST_DEVICE void fire(TaskCall& call, std::uint64_t number) const {
    machine::fence_device();
    DeviceAtomic<std::uint64_t>(call.fired).store(number, std::memory_order_relaxed);
    machine::fence_device_sequential();
    if (DeviceAtomic<std::uint64_t>(*asleep).load(std::memory_order_relaxed) != 0) service.ask();
  }
};

/// The grid that runs a task of `Function`.
template <class Function>
struct TaskGrid {
  static constexpr std::size_t shared_bytes = [] {
    if constexpr (requires { Function::shared_bytes; })
      return std::size_t{Function::shared_bytes};
    else
      return std::size_t{0};
  }();
  static constexpr unsigned max_threads = [] {
    if constexpr (requires { Function::max_threads; })
      return unsigned{Function::max_threads};
    else
      return 0u;
  }();

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, TaskCall* call) const {
    Function{}(grid, ctx, static_cast<const Task&>(call->task));
    grid.block().sync();
    if (grid.block().thread_rank() != 0) return;
    DeviceAtomic<std::uint32_t> blocks(call->ended_blocks);
    if (blocks.fetch_add(1, std::memory_order_acq_rel) + 1 != grid.blocks()) return;
    blocks.store(0, std::memory_order_relaxed);
    const std::uint64_t asked = DeviceAtomic<std::uint64_t>(call->asked).load(std::memory_order_relaxed);
    DeviceAtomic<std::uint64_t>(call->ended).store(asked, std::memory_order_release);
  }
};

}  // namespace beeline::detail
