// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a kernel starts on a stream of this layer.

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <typeinfo>

#include "beeline/device/grid.hpp"
#include "beeline/host/impl/launch.hpp"
#include "beeline/hpe/stream.hpp"

namespace beeline::hpe::detail {

/// Whether `kernel(grid, args...)` can be called on each kind of device that this unit is compiled for.
template <class Kernel, class... Args>
inline constexpr bool is_kernel = std::is_invocable_v<const Kernel&, Grid<HostTeam>&, const Args&...> &&
                                  (!BEELINE_COMPILES_CUDA ||
                                   std::is_invocable_v<const Kernel&, Grid<Block>&, const Args&...>);

/// A `__global__` function, and the GPUs on which it is loaded, one bit for each.
struct LoadedKernel {
  KernelCode code;  ///< no address in units that are compiled without CUDA
  std::atomic<std::uint64_t> gpus{0};
};

void launch_on_host(Stream& stream, const LaunchOptions& options, const std::type_info& kernel,
                    beeline::detail::HostBlock block);
///   parameters  the addresses of the function's parameters
void launch_on_gpu(Stream& stream, const LaunchOptions& options, const std::type_info& kernel, LoadedKernel& loaded,
                   void** parameters);

#if BEELINE_COMPILES_CUDA

template <class Kernel, class... Args>
__global__ void grid_kernel(Kernel kernel, Args... args) {
  Grid<Block> grid(Block{}, machine::block_rank(), machine::block_count(), nullptr);
  kernel(grid, args...);
}

/// As `grid_kernel`, for arguments of which nvcc may leave out a copy (kernel_parameters_machine.hpp).
template <class Kernel, class... Args>
__global__ void copying_kernel(Kernel kernel, Args... args) {
  Grid<Block> grid(Block{}, machine::block_rank(), machine::block_count(), nullptr);
  kernel(grid, beeline::detail::unknown_origin(args)...);
}

template <class Kernel, class... Args>
[[nodiscard]] constexpr auto kernel_function() {
  if constexpr ((false || ... || (sizeof(Args) > beeline::detail::safe_parameter_bytes)))
    return &copying_kernel<Kernel, Args...>;
  else
    return &grid_kernel<Kernel, Args...>;
}

/// Worlds that are made later load the function, too.
template <class Kernel, class... Args>
struct KernelOnGpus {
  static KernelCode code() {
    return {reinterpret_cast<const void*>(kernel_function<Kernel, Args...>()),
            beeline::detail::shared_bytes_of<Kernel>()};
  }
  static inline const bool registered = beeline::detail::register_kernel(code());
  static inline LoadedKernel loaded{code()};
};

#endif

template <class Kernel, class... Args>
void launch_kernel(Stream& stream, const LaunchOptions& options, const Kernel& kernel, Args... args) {
  if (!stream.device().is_gpu()) {
    launch_on_host(stream, options, typeid(Kernel),
                   [=, blocks = options.blocks](const HostTeam& threads, unsigned block_rank, GridState* /*none*/,
                                                const Context& /*of no world*/) {
                     Grid<HostTeam> grid(threads, block_rank, blocks, nullptr);
                     kernel(grid, args...);
                   });
    return;
  }
#if BEELINE_COMPILES_CUDA
  static_cast<void>(KernelOnGpus<Kernel, Args...>::registered);
  void* parameters[] = {const_cast<Kernel*>(&kernel), &args...};
  launch_on_gpu(stream, options, typeid(Kernel), KernelOnGpus<Kernel, Args...>::loaded, parameters);
#else
  LoadedKernel none;
  launch_on_gpu(stream, options, typeid(Kernel), none, nullptr);
#endif
}

}  // namespace beeline::hpe::detail
