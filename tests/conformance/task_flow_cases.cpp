// SPDX-License-Identifier: Apache-2.0
// Tasks that post tasks circulate among all ranks while programs allocate, free, wait for all of the device's work, and
// fill the device with a grid whose blocks wait for each other.
#include <algorithm>
#include <memory>
#include <optional>

#include "tests/conformance/foreign_memory.hpp"
#include "tests/conformance/rank_test.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda_runtime_api.h>
#endif

namespace beeline_test::task_flow_cases {

namespace {

using namespace beeline;

/// Posts itself to the next rank, `left` more times.
struct Pass {
  static constexpr const char* name = "pass";
  struct Arguments {
    std::uint32_t left, token;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const Task& task) const;
};
using List = TaskList<Pass>;

/// A rank's counts for one token. Tasks of one queue write them, one after another.
struct Seen {
  std::uint64_t passes, faults;
};

template <class Group>
BEELINE_HOST_DEVICE void Pass::operator()(const Group& group, const Context& ctx, const Task& task) const {
  const Arguments& it = task.as<Arguments>();
  Status status = Status::ok;
  if (it.left != 0) {
    const Arguments next{it.left - 1, it.token};
    // Repeated if acknowledgements from another node are late: no other token waits for this task.
    status = Status::timeout;
    for (std::uint32_t tries = 0; status == Status::timeout && detail::read_abort_word(ctx) == 0; ++tries) {
      status = post_task(group, ctx, task.channel, task_of<List, Pass>(next, (ctx.rank + 1) % ctx.size, it.token),
                         Timeout::test());
      machine::back_off(tries, ctx.polling);
    }
  }
  if (group.thread_rank() != 0) return;
  Seen& seen = static_cast<Seen*>(task.object)[it.token];
  ++seen.passes;
  if (status != Status::ok) ++seen.faults;
}

#if BEELINE_COMPILES_CUDA

/// All blocks of the grid wait for each other.
__global__ void meet_all(unsigned* arrived, unsigned* ended) {
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1);
  while (*static_cast<volatile unsigned*>(arrived) < gridDim.x) {
  }
  atomicAdd(ended, 1);
}

/// Runs `meet_all` with as many blocks as the GPU holds at once.
void run_full_grid(int gpu) {
  int blocks = 0, multiprocessors = 0;
  unsigned* counts = nullptr;
  BEELINE_CHECK(cudaSetDevice(gpu) == cudaSuccess);
  BEELINE_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, gpu) == cudaSuccess);
  BEELINE_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, meet_all, 1024, 0) == cudaSuccess);
  blocks *= multiprocessors;
  BEELINE_CHECK(cudaMalloc(&counts, 2 * sizeof(unsigned)) == cudaSuccess);
  BEELINE_CHECK(cudaMemset(counts, 0, 2 * sizeof(unsigned)) == cudaSuccess);
  unsigned* ended = counts + 1;
  void* arguments[] = {&counts, &ended};
  BEELINE_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(meet_all),
                                            dim3(static_cast<unsigned>(blocks)), dim3(1024), arguments, 0,
                                            cudaStreamPerThread) == cudaSuccess);
  BEELINE_CHECK(cudaDeviceSynchronize() == cudaSuccess);
  unsigned all = 0;
  BEELINE_CHECK(cudaMemcpy(&all, ended, sizeof all, cudaMemcpyDefault) == cudaSuccess);
  BEELINE_CHECK_EQ(static_cast<unsigned>(blocks), all);
  BEELINE_CHECK(cudaFree(counts) == cudaSuccess);
}

#else

void run_full_grid(int) {}

#endif

BEELINE_CASE(task, calls_for_the_whole_device_while_tasks_flow, 1) {
  test.skip_if(test.world().mixed(), "ranks of both kinds have no tasks");
  World& world = test.world();
  constexpr std::uint32_t tokens = 2, hops = 2000;
  Tasks<List> tasks(world, {.queues = tokens, .depth = 8, .workers = tokens});
  const SymmetricArray<Seen> seen(world, tokens);
  tasks.register_function<Pass>({.object = seen.data()});
  if (test.rank() == 0)
    for (std::uint32_t token = 0; token < tokens; ++token) tasks.post<Pass>({hops - 1, token}, 0, token);
  for (int round = 0; round < 3; ++round) {
    const ForeignMemory memory(test, std::size_t{1} << 20);  // cudaMalloc, cudaFree
    if (test.on_gpu()) run_full_grid(world.device().index);
    const SymmetricArray<std::byte> symmetric(world, 4096);
    world.synchronize();
  }
  tasks.quiet();
  std::uint64_t passes = 0;
  for (std::uint32_t token = 0; token < tokens; ++token) {
    const Seen mine = test.read_value(&seen.data()[token]);
    BEELINE_CHECK_EQ(std::uint64_t{0}, mine.faults);
    passes += mine.passes;
  }
  BEELINE_CHECK_EQ(std::uint64_t{tokens} * hops, world.allreduce(passes));
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::task_flow_cases
