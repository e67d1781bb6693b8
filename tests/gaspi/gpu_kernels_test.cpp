// SPDX-License-Identifier: Apache-2.0
// A program's own CUDA kernels and the endpoint that GASPI's C functions give it: kernels among each other, and kernels
// and hosts, over GPU segments with flags in either memory.
#include <GASPI_GPU.h>
#include <gtest/gtest.h>

#include "beeline/gaspi/device.hpp"
#include "tests/gaspi/gaspi_ranks.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda_runtime_api.h>
#endif

namespace beeline_test::gaspi_gpu_kernels_test {

namespace {

#if BEELINE_COMPILES_CUDA

using beeline::Block;
using beeline::Status;
using beeline::gaspi::Endpoint;

/// Segments: memory of the GPU, with flags there, with flags in host memory; host memory for the results.
constexpr gaspi_segment_id_t on_device = 1, with_host_flags = 2, results = 3;
constexpr std::uint32_t words = 5000;

/// Writes this rank's words to the next rank and waits for those of the previous one; then wakes the next rank's CPU,
/// and waits for the CPU of the previous one.
__global__ void ring_kernel(const __grid_constant__ Endpoint whole, std::uint64_t* mine, std::uint32_t* failed) {
  const Block block;
  const beeline::gaspi::EndpointView endpoint(whole);
  const std::uint32_t ranks = endpoint.context.size, rank = endpoint.context.rank;
  const std::uint32_t next = (rank + 1) % ranks, bytes = words * 8;
  const auto note = [&](Status status, std::uint32_t step) {
    if (status != Status::ok && block.thread_rank() == 0) *failed = step;
  };
  for (std::uint32_t i = block.thread_rank(); i < words; i += block.size()) mine[i] = 1000 * rank + i;
  note(gpu_write_notify(block, endpoint, {on_device, 0}, next, {on_device, bytes}, bytes, {40'000, 6}, 1), 1);
  std::uint32_t id = 0, value = 0;
  note(notify_waitsome(block, endpoint, on_device, 0, 65'536, id), 2);
  note(beeline::gaspi::notify_reset(block, endpoint, on_device, id, value), 3);
  if ((id != 40'000 || value != 6) && block.thread_rank() == 0) *failed = 4;
  const std::uint64_t expected = 1000 * ((rank + ranks - 1) % ranks);
  for (std::uint32_t i = block.thread_rank(); i < words; i += block.size())
    if (mine[words + i] != expected + i) *failed = 5;
  note(gpu_write_notify(block, whole, {on_device, 0}, next, {results, 0}, 80, {9, 7}, 0), 6);
  note(notify(block, endpoint, next, with_host_flags, {10, 8}, 0), 7);
  note(wait_for_notification(block, endpoint, on_device, 11), 8);
  if (beeline::gaspi::notify_reset(block, endpoint, with_host_flags, 12) != Status::unreachable)
    note(Status::internal, 9);
  note(beeline::gaspi::wait(block, endpoint, 0), 10);
}

void run_ring(int rank, int ranks) {
  const auto next = static_cast<gaspi_rank_t>((rank + 1) % ranks);
  GASPI_OK(gaspi_gpu_init());
  int gpu = -1;
  GASPI_OK(gaspi_gpu_ids(&gpu));
  BEELINE_CHECK(cudaSetDevice(gpu) == cudaSuccess);
  const auto make = [](gaspi_segment_id_t id, gaspi_alloc_t policy) {
    GASPI_OK(gaspi_segment_create(id, 2 * words * 8, GASPI_GROUP_ALL, GASPI_BLOCK, policy | GASPI_MEM_INITIALIZED));
  };
  make(on_device, GASPI_MEM_GPU | GASPI_MEM_GPU_FLAGS);
  make(with_host_flags, GASPI_MEM_GPU);
  make(results, 0);
  Endpoint endpoint{};
  GASPI_OK(gaspi_gpu_endpoint(&endpoint, sizeof endpoint));
  std::uint32_t *failed = nullptr, observed = 0;
  BEELINE_CHECK(cudaMalloc(&failed, sizeof *failed) == cudaSuccess);
  BEELINE_CHECK(cudaMemset(failed, 0, sizeof *failed) == cudaSuccess);
  cudaStream_t stream = nullptr;
  BEELINE_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  ring_kernel<<<1, 256, 0, stream>>>(endpoint, segment_memory<std::uint64_t>(on_device), failed);
  BEELINE_CHECK(cudaGetLastError() == cudaSuccess);
  BEELINE_CHECK_EQ(7u, take_notification(results, 9));
  BEELINE_CHECK_EQ(8u, take_notification(with_host_flags, 10));
  BEELINE_CHECK_EQ(1000u * static_cast<unsigned>((rank + ranks - 1) % ranks) + 9,
                   segment_memory<std::uint64_t>(results)[9]);
  GASPI_OK(gaspi_notify(on_device, next, 11, 1, 2, GASPI_BLOCK));
  GASPI_OK(gaspi_wait(2, GASPI_BLOCK));
  BEELINE_CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  BEELINE_CHECK(cudaMemcpy(&observed, failed, sizeof observed, cudaMemcpyDefault) == cudaSuccess);
  BEELINE_CHECK_EQ(0u, observed);  // the step that failed
  static_cast<void>(cudaFree(failed));
}

/// Memory from cudaMalloc as a segment of all ranks, and of this rank alone.
void run_maps(int rank, int ranks) {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  const auto next = static_cast<gaspi_rank_t>((rank + 1) % ranks);
  GASPI_OK(gaspi_gpu_init());
  int gpu = -1;
  GASPI_OK(gaspi_gpu_ids(&gpu));
  BEELINE_CHECK(cudaSetDevice(gpu) == cudaSuccess);
  std::byte* memory = nullptr;
  BEELINE_CHECK(cudaMalloc(&memory, 2 * bytes) == cudaSuccess);
  auto* const staging = make_segment(0, bytes / 8);
  GASPI_OK(gaspi_map_create(1, memory, bytes, GASPI_GROUP_ALL, GASPI_BLOCK, 0));
  GASPI_OK(gaspi_map_seg(2, memory + bytes, bytes, 0));
  for (std::size_t i = 0; i < bytes / 8; ++i) staging[i] = 1000 * static_cast<unsigned>(rank) + i;
  const auto me = static_cast<gaspi_rank_t>(rank);
  GASPI_OK(gaspi_write(0, 0, me, 2, 0, bytes, 0, GASPI_BLOCK));
  GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
  GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  GASPI_OK(gaspi_gpu_write_notify(2, 0, next, 1, 0, bytes, 3, 1, 0, GASPI_BLOCK));
  BEELINE_CHECK_EQ(1u, take_notification(1, 3));
  GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
  GASPI_OK(gaspi_read(0, 0, me, 1, 0, bytes, 0, GASPI_BLOCK));
  GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
  const std::uint64_t expected = 1000 * static_cast<unsigned>((rank + ranks - 1) % ranks);
  for (std::size_t i = 0; i < bytes / 8; ++i) BEELINE_CHECK_EQ(expected + i, staging[i]);
  if (ranks > 1) GASPI_REFUSED(GASPI_ERR_INV_SEG, "not registered", gaspi_write(0, 0, next, 2, 0, 8, 0, GASPI_BLOCK));
  GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  GASPI_OK(gaspi_segment_delete(1));
  GASPI_OK(gaspi_segment_delete(2));
  BEELINE_CHECK(cudaFree(memory) == cudaSuccess);
}

void on_gpus(int ranks, int nodes, void (*body)(int rank, int ranks)) {
  std::string why;
  if (gpus_here(&why) < ranks) GTEST_SKIP() << ranks << " GPUs are needed: " << why;
  expect_all_passed(run_processes_for_gaspi({.ranks = ranks, .nodes = nodes}, [=](int rank) {
    setenv("BEELINE_DEVICE", "auto", 1);
    // As beeline run does: kernels that spin must not hold up others (README.md).
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    body(rank, ranks);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
  }));
}

TEST(GaspiGpuKernels, OneRank) { on_gpus(1, 1, run_ring); }
TEST(GaspiGpuKernels, TwoRanks) { on_gpus(2, 1, run_ring); }
TEST(GaspiGpuKernels, TwoNodes) { on_gpus(2, 2, run_ring); }
TEST(GaspiGpuKernels, MapsOfOneRank) { on_gpus(1, 1, run_maps); }
TEST(GaspiGpuKernels, MapsOfTwoRanks) { on_gpus(2, 1, run_maps); }
TEST(GaspiGpuKernels, MapsOfTwoNodes) { on_gpus(2, 2, run_maps); }

#else

TEST(GaspiGpuKernels, NeedCuda) { GTEST_SKIP() << "this build has no CUDA"; }

#endif

}  // namespace

}  // namespace beeline_test::gaspi_gpu_kernels_test
