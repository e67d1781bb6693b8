// SPDX-License-Identifier: Apache-2.0
#include "hpe/small_kernel.hpp"

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"
#include "beeline/hpe/launch.hpp"

namespace beeline::bench::hpe {

namespace {
struct AddOne {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, std::uint32_t* words, std::size_t count) const {
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) ++words[i];
  }
};

constexpr unsigned small_blocks = 8, small_threads = 256;

#if BEELINE_COMPILES_CUDA
__global__ void add_one(std::uint32_t* words, std::size_t count) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) ++words[i];
}
#endif

}  // namespace

void launch_small(beeline::hpe::Stream& stream, std::uint32_t* words, std::size_t count) {
  const unsigned blocks = stream.device().is_gpu() ? small_blocks : 1;
  beeline::hpe::launch(stream, {.blocks = blocks, .threads = small_threads}, AddOne{}, words, count);
}

void bare_launch_small(const beeline::hpe::Stream& stream, std::uint32_t* words, std::size_t count) {
#if BEELINE_COMPILES_CUDA
  add_one<<<small_blocks, small_threads, 0, static_cast<cudaStream_t>(stream.native())>>>(words, count);
  require(cudaGetLastError() == cudaSuccess, Status::internal, "a bare launch has failed");
#else
  static_cast<void>(stream), static_cast<void>(words), static_cast<void>(count);
#endif
}

}  // namespace beeline::bench::hpe
