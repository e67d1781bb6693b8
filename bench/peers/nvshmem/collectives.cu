// SPDX-License-Identifier: Apache-2.0
// Relocatable device code, like nvshmem.cu: NVSHMEM's device library requires it.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <string>

#include "harness/timed_kernel.hpp"
#include "peers/nvshmem/collectives.hpp"

namespace beeline::bench::nvshmem {

namespace {

constexpr auto world_team = NVSHMEM_TEAM_WORLD;

void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess)
    throw Error(Status::internal, std::string("NVSHMEM's ") + what + ": " + cudaGetErrorString(result));
}

// --- On a stream ----------------------------------------------------------------------------------------------------

/// Source and destination with the element type of NVSHMEM's functions.
template <class T>
struct Typed {
  explicit Typed(const VectorPair& vectors)
      : destination(static_cast<T*>(vectors.destination)), source(static_cast<const T*>(vectors.source)),
        count(vectors.count * bytes_of(vectors.type) / sizeof(T)) {}
  T* destination;
  const T* source;
  std::size_t count;
};

int start_sum(Operation operation, const Typed<float>& to, cudaStream_t on) {
  return operation == Operation::allreduce
             ? nvshmemx_float_sum_reduce_on_stream(world_team, to.destination, to.source, to.count, on)
             : nvshmemx_float_sum_reducescatter_on_stream(world_team, to.destination, to.source, to.count, on);
}
int start_sum(Operation operation, const Typed<__nv_bfloat16>& to, cudaStream_t on) {
  return operation == Operation::allreduce
             ? nvshmemx_bfloat16_sum_reduce_on_stream(world_team, to.destination, to.source, to.count, on)
             : nvshmemx_bfloat16_sum_reducescatter_on_stream(world_team, to.destination, to.source, to.count, on);
}

int start_movement(Operation operation, const Typed<std::uint32_t>& to, cudaStream_t on) {
  if (operation == Operation::broadcast)
    return nvshmemx_uint32_broadcast_on_stream(world_team, to.destination, to.source, to.count, 0, on);
  if (operation == Operation::allgather)
    return nvshmemx_uint32_fcollect_on_stream(world_team, to.destination, to.source, to.count, on);
  return nvshmemx_uint32_alltoall_on_stream(world_team, to.destination, to.source, to.count, on);
}

/// Calls `use` with the vectors as elements of NVSHMEM's type: operations that only move data use words.
template <class Use>
auto as_elements(Operation operation, const VectorPair& vectors, Use use) {
  if (!is_sum(operation)) return use(Typed<std::uint32_t>(vectors));
  return vectors.type == ElementType::bfloat16 ? use(Typed<__nv_bfloat16>(vectors)) : use(Typed<float>(vectors));
}

// --- In a kernel ----------------------------------------------------------------------------------------------------

__device__ int call_in_block(Operation, const Typed<float>& to) {
  return nvshmemx_float_sum_reduce_block(world_team, to.destination, to.source, to.count);
}
__device__ int call_in_block(Operation, const Typed<__nv_bfloat16>& to) {
  return nvshmemx_bfloat16_sum_reduce_block(world_team, to.destination, to.source, to.count);
}
__device__ int call_in_block(Operation operation, const Typed<std::uint32_t>& to) {
  return operation == Operation::allgather
             ? nvshmemx_uint32_fcollect_block(world_team, to.destination, to.source, to.count)
             : nvshmemx_uint32_alltoall_block(world_team, to.destination, to.source, to.count);
}

template <class T>
__global__ __launch_bounds__(512) void collective_rounds(Loop loop, Operation operation, Typed<T> to) {
  time_rounds(beeline::Block{}, loop, [&](std::uint64_t) { return call_in_block(operation, to) == 0; });
}

}  // namespace

TimedCollectives::TimedCollectives(Bench& bench)
    : bench_(bench), stamps_((TimedKernel::most_batches + 1) * sizeof(std::uint64_t)) {}

void TimedCollectives::start(Operation operation, const VectorPair& vectors, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const int failed = as_elements(operation, vectors, [&]<class T>(const Typed<T>& to) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, __nv_bfloat16>)
      return start_sum(operation, to, on);
    else
      return start_movement(operation, to, on);
  });
  require(failed == 0, Status::internal, std::string("NVSHMEM's call on a stream failed: ") + name(operation));
}

std::vector<double> TimedCollectives::in_block(Operation operation, const VectorPair& vectors, unsigned threads,
                                               Rounds rounds) {
  World& world = bench_.world();
  const Loop loop{reinterpret_cast<std::uint64_t*>(stamps_.data()), 0, rounds, bench_.peer(), bench_.leads()};
  const auto stream = static_cast<cudaStream_t>(world.stream().native());
  world.barrier();
  as_elements(operation, vectors, [&]<class T>(const Typed<T>& to) {
    collective_rounds<T><<<1, threads, 0, stream>>>(loop, operation, to);
  });
  check(cudaGetLastError(), "kernel");
  world.synchronize();
  std::vector<std::uint64_t> stamps(rounds.batches + 1);
  stamps_.read(stamps.data(), stamps.size() * sizeof stamps[0]);
  std::vector<double> times;
  for (std::size_t i = 1; i < stamps.size(); ++i) times.push_back(static_cast<double>(stamps[i] - stamps[i - 1]));
  return times;
}

void start_barrier(void* stream) { nvshmemx_barrier_all_on_stream(static_cast<cudaStream_t>(stream)); }

}  // namespace beeline::bench::nvshmem
