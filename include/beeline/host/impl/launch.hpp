// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a portable kernel starts on either kind of device.

#include <cstdint>
#include <functional>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "beeline/device/access.hpp"  // defines the checks of Context::at
#include "beeline/device/grid.hpp"
#include "beeline/host/impl/kernel_parameters_machine.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/world.hpp"

namespace beeline::detail {

/// Every `__global__` function that this program may launch; worlds load these functions before any kernel spins.
[[nodiscard]] const std::vector<KernelCode>& registered_kernels();
bool register_kernel(const KernelCode& kernel);

/// Whether a kernel or an argument can be copied to the device as bytes. Types that can be moved but not copied count
/// as trivially copyable, hence the second condition.
template <class T>
inline constexpr bool travels_as_bytes = std::is_trivially_copyable_v<T>&& std::is_copy_constructible_v<T>;

/// Whether `kernel(grid, context, args...)` can be called on each kind of device that this unit is compiled for.
template <class Kernel, class... Args>
inline constexpr bool is_kernel = std::is_invocable_v<const Kernel&, Grid<HostTeam>&, const Context&, const Args&...> &&
                                  (!BEELINE_COMPILES_CUDA ||
                                   std::is_invocable_v<const Kernel&, Grid<Block>&, const Context&, Args&...>);

/// Dynamic shared memory of a block: the kernel's constant `shared_bytes`, or 0.
template <class Kernel>
[[nodiscard]] constexpr std::size_t shared_bytes_of() {
  if constexpr (requires { Kernel::shared_bytes; })
    return Kernel::shared_bytes;
  else
    return 0;
}

/// Largest number of threads of a block for which the kernel is compiled: its constant `max_threads`; 0: any number.
template <class Kernel>
[[nodiscard]] constexpr unsigned max_threads_of() {
  if constexpr (requires { Kernel::max_threads; })
    return Kernel::max_threads;
  else
    return 0;
}

/// Whether the kernel is prepared while the stream's earlier kernel ends: its constant `starts_early`.
template <class Kernel>
[[nodiscard]] constexpr bool starts_early() {
  if constexpr (requires { Kernel::starts_early; })
    return Kernel::starts_early;
  else
    return false;
}

/// The name of a kernel in errors.
struct KernelName {
  const std::type_info* type;
  std::uint16_t number;  ///< number in the order of first launches, from 1 on; 0 if no number is left
};
/// Gives the kernel the next number of this process.
[[nodiscard]] KernelName name_kernel(const std::type_info& type);
/// Type and number of a kernel. A launch passes these, since making the text of a name takes long.
template <class Kernel>
[[nodiscard]] const KernelName& kernel_name() {
  static const KernelName name = name_kernel(typeid(Kernel));
  return name;
}

/// Arguments of a permitted launch, for which the residency ledger has an entry and the GPU is current.
struct GpuLaunch {
  int gpu;
  void* stream;
  GridState* grid_state;
  Context context;
};
[[nodiscard]] GpuLaunch prepare_gpu_launch(Team& team, const LaunchOptions& options, const KernelCode& code,
                                           const KernelName& kernel);
/// Starts the grid of a permitted launch.
///   starts_early  the kernel's constant
///   parameters    the addresses of the function's parameters
void start_gpu_launch(const GpuLaunch& launch, const LaunchOptions& options, const KernelCode& code,
                      const KernelName& kernel, bool starts_early, void** parameters);

/// Runs one CPU thread's part of one block.
using HostBlock =
    std::function<void(const HostTeam& threads, unsigned block_rank, GridState* grid_state, const Context& context)>;
void launch_on_host(Team& team, const LaunchOptions& options, const KernelName& kernel, HostBlock block);

/// Blocks that a host rank's share of the cores runs at once.
[[nodiscard]] unsigned host_share_of_blocks(const World& world);
[[nodiscard]] unsigned gpu_share_of_blocks(World& world, const KernelCode& kernel, unsigned threads);
/// Blocks that a multiprocessor of the rank's GPU holds. Warps are counted in fours, since a multiprocessor's registers
/// are in four parts, each for every fourth warp of a block. Throws no_resource if a multiprocessor holds none.
[[nodiscard]] unsigned blocks_of_multiprocessor(const World& world, const KernelCode& kernel, unsigned threads);

#if BEELINE_COMPILES_CUDA

template <class Kernel, class... Args>
__global__ void grid_kernel(Kernel kernel, const __grid_constant__ Context context, GridState* grid_state,
                            Args... args) {
  if constexpr (starts_early<Kernel>()) machine::await_stream();
  Grid<Block> grid(Block{}, machine::block_rank(), machine::block_count(), grid_state);
  kernel(grid, context, args...);
}

/// As `grid_kernel`, with at most as many registers for each thread as blocks of `max_threads` threads permit.
template <class Kernel, class... Args>
__global__ __launch_bounds__(max_threads_of<Kernel>(), 1) void bounded_kernel(Kernel kernel,
                                                                              const __grid_constant__ Context context,
                                                                              GridState* grid_state, Args... args) {
  if constexpr (starts_early<Kernel>()) machine::await_stream();
  Grid<Block> grid(Block{}, machine::block_rank(), machine::block_count(), grid_state);
  kernel(grid, context, args...);
}

/// As `grid_kernel`, for functors that copy large structures. (With __grid_constant__ before Args, the host's compiler
/// does not find the function for types of anonymous namespaces.)
template <class Kernel, class... Args>
__global__ void copying_kernel(Kernel kernel, const __grid_constant__ Context context, GridState* grid_state,
                               Args... args) {
  if constexpr (starts_early<Kernel>()) machine::await_stream();
  Grid<Block> grid(Block{}, machine::block_rank(), machine::block_count(), grid_state);
  kernel(grid, context, unknown_origin(args)...);
}

/// As `bounded_kernel`, for functors that copy large structures.
template <class Kernel, class... Args>
__global__ __launch_bounds__(max_threads_of<Kernel>(),
                             1) void bounded_copying_kernel(Kernel kernel, const __grid_constant__ Context context,
                                                            GridState* grid_state, Args... args) {
  if constexpr (starts_early<Kernel>()) machine::await_stream();
  Grid<Block> grid(Block{}, machine::block_rank(), machine::block_count(), grid_state);
  kernel(grid, context, unknown_origin(args)...);
}

template <class Kernel, class... Args>
[[nodiscard]] constexpr auto kernel_function() {
  constexpr bool is_bounded = max_threads_of<Kernel>() != 0, copies = copies_parameters<Kernel, Args...>();
  if constexpr (copies && is_bounded)
    return &bounded_copying_kernel<Kernel, Args...>;
  else if constexpr (copies)
    return &copying_kernel<Kernel, Args...>;
  else if constexpr (is_bounded)
    return &bounded_kernel<Kernel, Args...>;
  else
    return &grid_kernel<Kernel, Args...>;
}

template <class Kernel, class... Args>
struct RegisteredKernel {
  static KernelCode code() {
    return {reinterpret_cast<const void*>(kernel_function<Kernel, Args...>()), shared_bytes_of<Kernel>()};
  }
  static inline const bool registered = register_kernel(code());
};

#endif

/// The kernel's code for GPUs; without an address where none was compiled.
template <class Kernel, class... Args>
KernelCode code_of() {
#if BEELINE_COMPILES_CUDA
  static_cast<void>(RegisteredKernel<Kernel, Args...>::registered);
  return RegisteredKernel<Kernel, Args...>::code();
#else
  return {};
#endif
}

template <class Kernel, class... Args>
unsigned resident_blocks(World& world, unsigned threads) {
  if (!world.device().is_gpu()) return host_share_of_blocks(world);
  return gpu_share_of_blocks(world, code_of<Kernel, Args...>(), threads);
}

template <class Kernel, class... Args>
unsigned blocks_of_multiprocessor(const World& world, unsigned threads) {
  return blocks_of_multiprocessor(world, code_of<Kernel, Args...>(), threads);
}

template <class Kernel, class... Args>
void launch_kernel(Team& team, const LaunchOptions& options, const Kernel& kernel, Args... args) {
  if (!team.world().device().is_gpu()) {
    const unsigned blocks = options.blocks;
    launch_on_host(team, options, kernel_name<Kernel>(),
                   [=](const HostTeam& threads, unsigned block_rank, GridState* grid_state, const Context& context) {
                     Grid<HostTeam> grid(threads, block_rank, blocks, grid_state);
                     kernel(grid, context, args...);
                   });
    return;
  }
#if BEELINE_COMPILES_CUDA
  static_cast<void>(RegisteredKernel<Kernel, Args...>::registered);
  const KernelCode code = RegisteredKernel<Kernel, Args...>::code();
  GpuLaunch launch = prepare_gpu_launch(team, options, code, kernel_name<Kernel>());
  void* parameters[] = {const_cast<Kernel*>(&kernel), &launch.context, &launch.grid_state, &args...};
  start_gpu_launch(launch, options, code, kernel_name<Kernel>(), starts_early<Kernel>(), parameters);
#else
  static_cast<void>(prepare_gpu_launch(team, options, {}, kernel_name<Kernel>()));
#endif
}

}  // namespace beeline::detail
