// SPDX-License-Identifier: Apache-2.0
/// @file
/// Kernels that a kernel launches, to run one after the other after its own end (CUDA dynamic parallelism, tail
/// launches). Relocatable device code: see CMakeLists.txt. Source: seed 000, 5.8.3.

#include "device_launched/exchange.hpp"

#include "beeline/core/error.hpp"
#include "beeline/host/launch.hpp"

namespace beeline::bench {

#if BEELINE_COMPILES_CUDA

namespace {

__device__ Grid<Block> launched_grid() { return {Block{}, machine::block_rank(), machine::block_count(), nullptr}; }

__global__ void compute_alone(const __grid_constant__ Context ctx, Exchange exchange, std::uint64_t iteration) {
  exchange.compute(launched_grid(), ctx, iteration);
}
__global__ void communicate_alone(const __grid_constant__ Context ctx, Exchange exchange, std::uint64_t iteration) {
  static_cast<void>(exchange.communicate(Block{}, ctx, iteration));
}
__global__ void compute_and_communicate(const __grid_constant__ Context ctx, Exchange exchange,
                                        std::uint64_t iteration) {
  const Grid<Block> grid = launched_grid();
  exchange.compute(grid, ctx, iteration);
  if (exchange.is_last(grid)) static_cast<void>(exchange.communicate(grid.block(), ctx, iteration));
}

/// The kernel that the CPU launches.
struct LaunchIterations {
  template <class AnyGrid>
  BEELINE_HOST_DEVICE void operator()(const AnyGrid& grid, const Context& ctx, Exchange exchange, bool in_one,
                                      unsigned blocks, std::uint64_t first, std::uint32_t count, int* error) const {
#if BEELINE_ON_GPU
    if (grid.thread_rank() != 0) return;
    for (std::uint64_t i = first; i < first + count; ++i) {
      if (in_one) {
        compute_and_communicate<<<blocks, exchange_threads, 0, cudaStreamTailLaunch>>>(ctx, exchange, i);
        continue;
      }
      compute_alone<<<blocks, exchange_threads, 0, cudaStreamTailLaunch>>>(ctx, exchange, i);
      communicate_alone<<<1, exchange_threads, 0, cudaStreamTailLaunch>>>(ctx, exchange, i);
    }
    if (const cudaError_t failed = cudaGetLastError(); failed != cudaSuccess) *error = failed;
#else
    static_cast<void>(grid), static_cast<void>(ctx), static_cast<void>(exchange), static_cast<void>(in_one);
    static_cast<void>(blocks), static_cast<void>(first), static_cast<void>(count), static_cast<void>(error);
#endif
  }
};

}  // namespace

void launch_from_kernel(World& world, const Exchange& exchange, Separation separation, unsigned blocks,
                        std::uint64_t first, std::uint32_t count, int* error) {
  require(world.device().is_gpu(), Status::unavailable,
          "kernels that launch kernels need a GPU, and this rank has none");
  for (const void* kernel :
       {reinterpret_cast<const void*>(&compute_alone), reinterpret_cast<const void*>(&communicate_alone),
        reinterpret_cast<const void*>(&compute_and_communicate)})
    load_kernel(KernelCode{kernel}, world.device().index);
  launch(world, {.threads = 1, .waits = true}, LaunchIterations{}, exchange, separation == Separation::last_block,
         blocks, first, count, error);
}

#else

void launch_from_kernel(World&, const Exchange&, Separation, unsigned, std::uint64_t, std::uint32_t, int*) {
  throw Error(Status::unavailable, "kernels that launch kernels need a GPU, and this program was built without CUDA");
}

#endif

}  // namespace beeline::bench
