// SPDX-License-Identifier: Apache-2.0
#include "hpe/word_kernels.hpp"

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"
#include "beeline/hpe/launch.hpp"
#include "beeline/runtime/device.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda_runtime_api.h>
#endif

namespace beeline::bench::hpe {

namespace {

using beeline::hpe::launch;
using beeline::hpe::Stream;

/// Words that a thread loads and stores at once.
struct alignas(16) FourWords {
  std::uint32_t each[4];
};

/// Each thread stores the sum of its words.
struct SumOfWords {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const std::uint32_t* words, std::size_t count,
                                      std::uint32_t* sums) const {
    std::uint32_t own = 0;
    for (std::size_t i = grid.thread_rank(); i < count / 4; i += grid.size()) {
      const FourWords some = reinterpret_cast<const FourWords*>(words)[i];
      own += some.each[0] + some.each[1] + some.each[2] + some.each[3];
    }
    sums[grid.thread_rank()] = own;
  }
};
struct IncrementWords {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, std::uint32_t* words, std::size_t count) const {
    for (std::size_t i = grid.thread_rank(); i < count / 4; i += grid.size()) {
      FourWords some = reinterpret_cast<const FourWords*>(words)[i];
      for (std::uint32_t& each : some.each) ++each;
      reinterpret_cast<FourWords*>(words)[i] = some;
    }
  }
};

LaunchOptions shape_on(const Stream& stream) {
  return {.blocks = stream.device().is_gpu() ? most_blocks : 1, .threads = block_threads};
}

}  // namespace

void launch_sum(Stream& stream, Words& words, std::uint32_t* sums) {
  launch(stream, shape_on(stream), SumOfWords{}, words, words.size(), sums);
}
void launch_sum(Stream& stream, std::uint32_t* words, std::size_t count, std::uint32_t* sums) {
  launch(stream, shape_on(stream), SumOfWords{}, words, count, sums);
}
void launch_increment(Stream& stream, Words& words) {
  launch(stream, shape_on(stream), IncrementWords{}, words, words.size());
}
void launch_increment(Stream& stream, std::uint32_t* words, std::size_t count) {
  launch(stream, shape_on(stream), IncrementWords{}, words, count);
}

#if BEELINE_COMPILES_CUDA

ManagedWords::ManagedWords(beeline::hpe::Device gpu, std::size_t count) {
  require(gpu.is_gpu(), Status::unavailable, "managed memory is memory of GPUs");
  use_gpu(gpu.index());
  if (cudaMallocManaged(&start_, count * sizeof *start_) != cudaSuccess ||
      cudaMemset(start_, 0, count * sizeof *start_) != cudaSuccess)
    throw Error(Status::no_resource, cudaGetErrorString(cudaGetLastError()));
}
ManagedWords::~ManagedWords() { cudaFree(start_); }

#else

ManagedWords::ManagedWords(beeline::hpe::Device, std::size_t) {
  throw Error(Status::unavailable, "managed memory is memory of GPUs");
}
ManagedWords::~ManagedWords() = default;

#endif

}  // namespace beeline::bench::hpe
