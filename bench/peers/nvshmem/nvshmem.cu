// SPDX-License-Identifier: Apache-2.0
// Relocatable device code: NVSHMEM's device library requires it.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>

#include "harness/random.hpp"
#include "harness/timed_grid.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/nvshmem/nvshmem.hpp"

namespace beeline::bench::nvshmem {

namespace {

bool started = false;

void check_device(cudaError_t result, const char* what) {
  if (result != cudaSuccess)
    throw Error(Status::internal, std::string("beside NVSHMEM, ") + what + ": " + cudaGetErrorString(result));
}

/// Waits for the default stream, at most until the world's deadline: NVSHMEM's own waits have none.
void finish(const Bench& bench) {
  check_device(cudaGetLastError(), "launch");
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(bench.world().config().deadline_ns);
  for (;;) {
    const cudaError_t state = cudaStreamQuery(nullptr);
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady) check_device(state, "kernel");
    require(std::chrono::steady_clock::now() < end, Status::deadline, "a kernel with NVSHMEM's operations did not end");
    std::this_thread::yield();
  }
}

__device__ void put_with_signal(Thread, const Setup& setup, std::uint64_t value, int peer) {
  nvshmem_putmem_signal_nbi(setup.destination, setup.source, setup.bytes, setup.word, value, NVSHMEM_SIGNAL_SET, peer);
}
__device__ void put_with_signal(Warp, const Setup& setup, std::uint64_t value, int peer) {
  nvshmemx_putmem_signal_nbi_warp(setup.destination, setup.source, setup.bytes, setup.word, value, NVSHMEM_SIGNAL_SET,
                                  peer);
}
__device__ void put_with_signal(beeline::Block, const Setup& setup, std::uint64_t value, int peer) {
  nvshmemx_putmem_signal_nbi_block(setup.destination, setup.source, setup.bytes, setup.word, value, NVSHMEM_SIGNAL_SET,
                                   peer);
}

template <class Group>
__device__ bool await(Group group, std::uint64_t* signal, std::uint64_t value) {
  if (group.thread_rank() == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, value);
  group.sync();
  return true;
}

template <class Group>
__global__ void put_signal_rounds(Loop loop, Setup setup) {
  const Group group;
  time_rounds(group, loop, [&](std::uint64_t sequence) {
    return round_trip(
        loop.leads, [&] { put_with_signal(group, setup, sequence, static_cast<int>(loop.peer)); },
        [&] { return await(group, setup.word, sequence); });
  });
}

__global__ void signal_rounds(Loop loop, Setup setup) {
  time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
    return round_trip(
        loop.leads, [&] { nvshmemx_signal_op(setup.word, sequence, NVSHMEM_SIGNAL_SET, static_cast<int>(loop.peer)); },
        [&] { return await(Thread{}, setup.word, sequence); });
  });
}

template <BlockOperation operation>
__global__ void barrier_rounds(Loop loop) {
  time_rounds(beeline::Block{}, loop, [](std::uint64_t) {
    if constexpr (operation == BlockOperation::barrier)
      nvshmemx_barrier_all_block();
    else
      nvshmemx_sync_all_block();
    return true;
  });
}

__global__ void fetch_add_rounds(Loop loop, Setup setup) {
  time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
    return nvshmem_uint64_atomic_fetch_add(setup.word, 1, static_cast<int>(loop.peer)) == sequence - 1;
  });
}

__global__ void put_messages(BlockTimes* times, std::byte* destination, const std::byte* source, std::size_t bytes,
                             std::uint32_t messages, int peer) {
  const Share share = share_of(bytes, blockIdx.x, gridDim.x);
  const std::uint64_t start = machine::clock_ns();
  for (std::uint32_t i = 0; i < messages; ++i)
    nvshmemx_putmem_nbi_block(destination + share.offset, source + share.offset, share.bytes, peer);
  nvshmem_quiet();
  __syncthreads();
  if (threadIdx.x == 0) times[blockIdx.x] = {start, machine::clock_ns()};
}

template <class Use>
__device__ void for_each_update(std::uint64_t words, std::uint64_t seed, std::uint64_t each, int ranks, Use use) {
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < threads * each; i += threads) {
    const std::uint64_t random = random_word(seed, i);
    use(random, random & (words - 1), static_cast<int>((random >> 32) * static_cast<std::uint64_t>(ranks) >> 32));
  }
}

__global__ void add_everywhere(BlockTimes* times, std::uint64_t* table, std::uint64_t words, std::uint64_t seed,
                               std::uint64_t each, int ranks) {
  const std::uint64_t start = machine::clock_ns();
  for_each_update(words, seed, each, ranks, [&](std::uint64_t random, std::uint64_t index, int rank) {
    nvshmem_uint64_atomic_add(table + index, random, rank);
  });
  nvshmem_quiet();
  __syncthreads();
  if (threadIdx.x == 0) times[blockIdx.x] = {start, machine::clock_ns()};
}

__device__ void add_to(std::uint64_t* total, std::uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(total), value);
}

__global__ void sum_words(const std::uint64_t* table, std::uint64_t words, std::uint64_t* total) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words;
       i += std::uint64_t{gridDim.x} * blockDim.x)
    sum += table[i];
  add_to(total, sum);
}

__global__ void sum_updates(std::uint64_t words, std::uint64_t seed, std::uint64_t each, int ranks,
                            std::uint64_t* total) {
  std::uint64_t sum = 0;
  for_each_update(words, seed, each, ranks, [&](std::uint64_t random, std::uint64_t, int) { sum += random; });
  add_to(total, sum);
}

constexpr unsigned grid_block_threads = 512;

/// Time from the first block's start to the last block's end.
double whole_time(const Memory& times, unsigned blocks) {
  std::vector<BlockTimes> all(blocks);
  times.read(all.data(), all.size() * sizeof all[0]);
  BlockTimes whole = all.front();
  for (const BlockTimes& block : all) whole = {std::min(whole.start, block.start), std::max(whole.end, block.end)};
  return static_cast<double>(whole.end - whole.start);
}

void launch_put_signal(const Loop& loop, const Setup& setup) {
  with_group(setup.choice.kind,
             [&]<class Group>(Group) { put_signal_rounds<Group><<<1, setup.choice.threads>>>(loop, setup); });
}

void launch_rounds(BlockOperation operation, const Loop& loop, const Setup& setup) {
  switch (operation) {
    case BlockOperation::put_signal:
      return launch_put_signal(loop, setup);
    case BlockOperation::signal:
      return signal_rounds<<<1, 1>>>(loop, setup);
    case BlockOperation::barrier:
      return barrier_rounds<BlockOperation::barrier><<<1, setup.choice.threads>>>(loop);
    case BlockOperation::sync:
      return barrier_rounds<BlockOperation::sync><<<1, setup.choice.threads>>>(loop);
    case BlockOperation::fetch_add:
      return fetch_add_rounds<<<1, 1>>>(loop, setup);
  }
}

bool takes_part(const Bench& bench, BlockOperation operation) {
  if (operation == BlockOperation::barrier || operation == BlockOperation::sync) return true;
  return operation == BlockOperation::fetch_add ? bench.leads() : bench.paired();
}

}  // namespace

void start(Bench& bench) {
  if (started) return;
  const World& world = bench.world();
  require(bench.everywhere(world.device().is_gpu()), Status::unavailable, "NVSHMEM's ranks are GPUs");
  require(!world.config().threads, Status::unavailable, "NVSHMEM's ranks are processes, and these are threads");
  check_device(cudaSetDevice(world.device().index), "cudaSetDevice");
  constexpr std::size_t gib = std::size_t{1} << 30;
  const std::size_t heap = std::max(4 * gib, heap_bytes_for(bench.options(), world.size(), true) + gib);  // its own
  setenv("NVSHMEM_SYMMETRIC_SIZE", std::to_string(heap).c_str(), 0);
  setenv("NVSHMEM_DISABLE_NVLS", "1", 0);  // for a fair comparison: Beeline does not use the switches' multicast here
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (bench.leads()) require(nvshmemx_get_uniqueid(&id) == 0, Status::internal, "nvshmemx_get_uniqueid failed");
  const auto ids = bench.world().allgather(std::as_bytes(std::span(&id, 1)));
  std::memcpy(&id, ids.front().data(), sizeof id);
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  nvshmemx_set_attr_uniqueid_args(world.rank(), world.size(), &id, &attributes);
  require(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0, Status::internal,
          "nvshmemx_init_attr failed");
  started = true;
}

void stop() {
  if (started) nvshmem_finalize();
  started = false;
}

Memory::Memory(std::size_t bytes) : data_(static_cast<std::byte*>(nvshmem_malloc(std::max<std::size_t>(bytes, 8)))) {
  require(data_ != nullptr, Status::no_resource,
          "NVSHMEM's heap has no room for " + std::to_string(bytes) + " bytes; see NVSHMEM_SYMMETRIC_SIZE");
  check_device(cudaMemset(data_, 0, bytes), "cudaMemset");
  check_device(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  nvshmem_barrier_all();
}
Memory::~Memory() {
  if (started) nvshmem_free(data_);
}
void Memory::write(const void* from, std::size_t bytes) {
  check_device(cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}
void Memory::read(void* to, std::size_t bytes) const {
  check_device(cudaMemcpy(to, data_, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

TimedBlock::TimedBlock(Bench& bench)
    : bench_(bench), stamps_((TimedKernel::most_batches + 1) * sizeof(std::uint64_t)) {}

std::vector<double> TimedBlock::run(BlockOperation operation, const Setup& setup, Rounds rounds) {
  const Loop loop{reinterpret_cast<std::uint64_t*>(stamps_.data()), last_, rounds, bench_.peer(), bench_.leads()};
  last_ = loop.last();
  bench_.world().barrier();
  if (!takes_part(bench_, operation)) return {};
  launch_rounds(operation, loop, setup);
  finish(bench_);
  std::vector<std::uint64_t> stamps(rounds.batches + 1);
  stamps_.read(stamps.data(), stamps.size() * sizeof stamps[0]);
  std::vector<double> times;
  for (std::size_t i = 1; i < stamps.size(); ++i) times.push_back(static_cast<double>(stamps[i] - stamps[i - 1]));
  return times;
}

TimedBlocks::TimedBlocks(Bench& bench, unsigned most_blocks)
    : bench_(bench), times_(most_blocks * sizeof(BlockTimes)), total_(sizeof(std::uint64_t)) {}

double TimedBlocks::put(unsigned blocks, std::byte* destination, const std::byte* source, std::size_t bytes,
                        std::uint32_t messages) {
  bench_.world().barrier();
  if (!bench_.leads()) return 0;
  put_messages<<<blocks, grid_block_threads>>>(reinterpret_cast<BlockTimes*>(times_.data()), destination, source, bytes,
                                               messages, static_cast<int>(bench_.peer()));
  finish(bench_);
  return whole_time(times_, blocks);
}

double TimedBlocks::update(unsigned blocks, std::uint64_t* table, std::uint64_t words, std::uint64_t seed,
                           std::uint64_t each) {
  bench_.world().barrier();
  add_everywhere<<<blocks, grid_block_threads>>>(reinterpret_cast<BlockTimes*>(times_.data()), table, words, seed, each,
                                                 bench_.world().size());
  finish(bench_);
  const std::vector<std::uint64_t> all = bench_.from_all(static_cast<std::uint64_t>(whole_time(times_, blocks)));
  return static_cast<double>(*std::max_element(all.begin(), all.end()));
}

std::uint64_t TimedBlocks::sum(const std::uint64_t* table, std::uint64_t words) {
  std::uint64_t total = 0;
  total_.write(&total, sizeof total);
  sum_words<<<264, grid_block_threads>>>(table, words, reinterpret_cast<std::uint64_t*>(total_.data()));
  finish(bench_);
  total_.read(&total, sizeof total);
  return total;
}

std::uint64_t TimedBlocks::sum_of_updates(unsigned blocks, std::uint64_t words, std::uint64_t seed,
                                          std::uint64_t each) {
  std::uint64_t total = 0;
  total_.write(&total, sizeof total);
  sum_updates<<<blocks, grid_block_threads>>>(words, seed, each, bench_.world().size(),
                                              reinterpret_cast<std::uint64_t*>(total_.data()));
  finish(bench_);
  total_.read(&total, sizeof total);
  return total;
}

}  // namespace beeline::bench::nvshmem
