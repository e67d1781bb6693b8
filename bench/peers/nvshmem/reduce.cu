// SPDX-License-Identifier: Apache-2.0
// With relocatable device code, like nvshmem.cu: NVSHMEM's device library asks for it.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <string>

#include "harness/timed_kernel.hpp"
#include "peers/nvshmem/reduce.hpp"

namespace beeline::bench::nvshmem {

namespace {

void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess)
    throw Error(Status::internal, std::string("NVSHMEM's ") + what + ": " + cudaGetErrorString(result));
}

template <class T>
__global__ __launch_bounds__(512) void sum_rounds(Loop loop, T* destination, const T* source, std::size_t count) {
  time_rounds(beeline::Block{}, loop, [&](std::uint64_t) {
    if constexpr (std::is_same_v<T, float>)
      return nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, destination, source, count) == 0;
    else
      return nvshmemx_bfloat16_sum_reduce_block(NVSHMEM_TEAM_WORLD, destination, source, count) == 0;
  });
}

template <class T>
void launch_rounds(const Loop& loop, const VectorPair& vectors, unsigned threads, cudaStream_t stream) {
  sum_rounds<<<1, threads, 0, stream>>>(loop, static_cast<T*>(vectors.destination),
                                        static_cast<const T*>(vectors.source), vectors.count);
}

}  // namespace

TimedReduction::TimedReduction(Session& session)
    : session_(session), stamps_((TimedKernel::most_batches + 1) * sizeof(std::uint64_t)) {}

void TimedReduction::start(const VectorPair& vectors, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const int failed =
      vectors.type == ElementType::bfloat16
          ? nvshmemx_bfloat16_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, static_cast<__nv_bfloat16*>(vectors.destination),
                                                   static_cast<const __nv_bfloat16*>(vectors.source), vectors.count, on)
          : nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, static_cast<float*>(vectors.destination),
                                                static_cast<const float*>(vectors.source), vectors.count, on);
  require(failed == 0, Status::internal, "NVSHMEM's sum_reduce_on_stream failed");
}

std::vector<double> TimedReduction::in_block(const VectorPair& vectors, unsigned threads, Rounds rounds) {
  World& world = session_.world();
  const Loop loop{reinterpret_cast<std::uint64_t*>(stamps_.data()), 0, rounds, session_.peer(), session_.leads()};
  const auto stream = static_cast<cudaStream_t>(world.stream().native());
  world.barrier();
  if (vectors.type == ElementType::bfloat16)
    launch_rounds<__nv_bfloat16>(loop, vectors, threads, stream);
  else
    launch_rounds<float>(loop, vectors, threads, stream);
  check(cudaGetLastError(), "kernel");
  world.synchronize();
  std::vector<std::uint64_t> stamps(rounds.batches + 1);
  stamps_.read(stamps.data(), stamps.size() * sizeof stamps[0]);
  std::vector<double> times;
  for (std::size_t i = 1; i < stamps.size(); ++i) times.push_back(static_cast<double>(stamps[i] - stamps[i - 1]));
  return times;
}

}  // namespace beeline::bench::nvshmem
