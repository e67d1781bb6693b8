// SPDX-License-Identifier: Apache-2.0
/// @file
/// The barrier as a kernel that the preceding kernel launches between its own end and the following kernel, which does
/// the same (CUDA dynamic parallelism, tail launches). Nesting is limited, so the kernels form chains, which one kernel
/// launches in its own tail: a chain begins when the previous chain is over.
///
/// Relocatable device code: see CMakeLists.txt. Source: seed 000, 6.7.1 and figure 6.10.

#include "device_launched/barrier.hpp"

#include <memory>
#include <string>

#include "beeline/collectives/barrier_kernel.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/collectives.hpp"
#include "beeline/host/launch.hpp"
#include "harness/random.hpp"

namespace beeline::bench {

namespace {

#if BEELINE_COMPILES_CUDA

/// CUDA nests kernels 24 deep; the last barrier of a chain is one level deeper than the chain has links.
constexpr std::uint32_t most_links = 16;
/// Bounds the chains in the tail of one kernel, far below the 2048 launches that the device runtime holds.
constexpr std::uint32_t most_iterations = 10'000;
static_assert(most_iterations / most_links < 1000);

/// Kernels with barriers between them.
struct Chain {
  CollectiveChannel channel;
  std::uint64_t first;   ///< barriers of earlier chains on the same channel
  std::uint32_t links;   ///< barriers of this chain
  std::uint64_t* words;  ///< symmetric [2, max_ranks]: each rank's word of even and odd rounds; nullptr: timed only
  std::uint64_t* right;  ///< rounds in which all words were right
  std::uint64_t seed;
  int* launch_error;  ///< host memory: the device runtime's error, 0 if none
};

__device__ void note_error(int* launch_error) {
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) *launch_error = error;
}

/// Checks the words that all ranks stored before the barrier that led to round `round`.
__device__ void look(const Context& ctx, const Chain& chain, std::uint64_t round) {
  bool wrong = false;
  for (std::uint32_t from = threadIdx.x; from < ctx.size; from += blockDim.x)
    if (load_value(&chain.words[round % 2 * max_ranks + from]) != random_word(chain.seed, round * max_ranks + from))
      wrong = true;
  const bool any = Block{}.any(wrong);
  if (threadIdx.x == 0 && !any) ++*chain.right;
}

/// Stores this rank's word of `round` on all ranks, in the half that no rank checks before the next barrier.
__device__ void store(const Context& ctx, const Chain& chain, std::uint64_t round) {
  for (std::uint32_t peer = threadIdx.x; peer < ctx.size; peer += blockDim.x)
    put_value(ctx, &chain.words[round % 2 * max_ranks + ctx.rank],
              random_word(chain.seed, round * max_ranks + ctx.rank), peer);
}

/// A kernel of the chain, after `step` barriers: launches the next barrier, and the kernel that follows the barrier.
template <Algorithm algorithm>
__global__ void follow(const __grid_constant__ Context ctx, Chain chain, std::uint32_t step) {
  const bool is_last = step == chain.links;
  if (chain.words != nullptr) {
    if (step != 0) look(ctx, chain, chain.first + step);
    if (!is_last) store(ctx, chain, chain.first + step + 1);
  }
  if (is_last || threadIdx.x != 0) return;
  barrier_kernel<algorithm><<<1, barrier_kernel_threads, 0, cudaStreamTailLaunch>>>(ctx, chain.channel);
  follow<algorithm><<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(ctx, chain, step + 1);
  note_error(chain.launch_error);
}

__global__ void note_time(std::uint64_t* stamp) { *stamp = machine::clock_ns(); }

/// The launches of one kernel: chains with `warm_up` barriers altogether, the first stamp, `rounds` barriers, the
/// second stamp.
struct Plan {
  Chain chain;
  std::uint32_t warm_up, rounds;
  std::uint64_t* stamps;
};

template <Algorithm algorithm>
__device__ void launch_chains(const Context& ctx, Chain& chain, std::uint32_t rounds) {
  for (const std::uint64_t end = chain.first + rounds; chain.first < end; chain.first += chain.links) {
    chain.links = end - chain.first < most_links ? static_cast<std::uint32_t>(end - chain.first) : most_links;
    follow<algorithm><<<1, barrier_kernel_threads, 0, cudaStreamTailLaunch>>>(ctx, chain, 0);
  }
}

/// The kernel that the CPU launches: one block, which has ended when the first chain begins.
template <Algorithm algorithm>
struct LaunchChains {
  static constexpr bool has_sound_copies = true;
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const Context& ctx, Plan plan) const {
#if BEELINE_ON_GPU
    if (grid.thread_rank() != 0) return;
    launch_chains<algorithm>(ctx, plan.chain, plan.warm_up);
    note_time<<<1, 1, 0, cudaStreamTailLaunch>>>(plan.stamps);
    launch_chains<algorithm>(ctx, plan.chain, plan.rounds);
    note_time<<<1, 1, 0, cudaStreamTailLaunch>>>(plan.stamps + 1);
    note_error(plan.chain.launch_error);
#else
    static_cast<void>(grid), static_cast<void>(ctx), static_cast<void>(plan);
#endif
  }
};

/// Runs the chains on all ranks, with timing and checks.
template <Algorithm algorithm>
class ChainLoop {
 public:
  /// Collective.
  explicit ChainLoop(Bench& bench)
      : bench_(bench), collectives_(bench.world()), stamps_(bench.world(), 2), words_(bench.world(), 2 * max_ranks),
        right_(bench.world(), 1), launch_error_(bench.world(), 1, Heap::pinned) {
    for (const void* kernel :
         {reinterpret_cast<const void*>(&barrier_kernel<algorithm>), reinterpret_cast<const void*>(&follow<algorithm>),
          reinterpret_cast<const void*>(&note_time)})
      load_kernel(KernelCode{kernel}, bench.world().device().index);
    *launch_error_.data() = 0;
    bench.world().barrier();  // from here on kernels wait for each other
  }

  std::vector<double> time(Rounds rounds) {
    std::vector<double> times;
    for (std::uint32_t batch = 0; batch < rounds.batches; ++batch) {
      // Ranks begin at different times: at least one barrier precedes the timed part.
      run({chain_of(nullptr, 0), rounds.warm_up + 1, rounds.iterations, stamps_.data()});
      std::uint64_t stamps[2];
      bench_.world().copy(stamps, stamps_.data(), sizeof stamps);
      times.push_back(static_cast<double>(stamps[1] - stamps[0]));
    }
    return times;
  }

  bool verify(std::uint64_t seed) {
    constexpr std::uint32_t rounds = 3 * most_links;
    std::uint64_t right = 0;
    bench_.world().copy(right_.data(), &right, sizeof right);
    run({chain_of(words_.data(), seed), 1, rounds - 1, stamps_.data()});
    bench_.world().copy(&right, right_.data(), sizeof right);
    return right == rounds;
  }

 private:
  [[nodiscard]] Chain chain_of(std::uint64_t* words, std::uint64_t seed) const {
    return {collectives_.channel(), 0, 0, words, right_.data(), seed, launch_error_.data()};
  }

  void run(const Plan& plan) {
    World& world = bench_.world();
    world.barrier();
    launch(world, {.blocks = 1, .threads = barrier_kernel_threads, .waits = true}, LaunchChains<algorithm>{}, plan);
    world.synchronize();
    const int error = *launch_error_.data();
    require(error == 0, Status::internal,
            std::string("a kernel launched from a kernel: ") + cudaGetErrorString(static_cast<cudaError_t>(error)));
  }

  Bench& bench_;
  Collectives collectives_;
  SymmetricArray<std::uint64_t> stamps_, words_, right_;
  SymmetricArray<int> launch_error_;
};

template <Algorithm algorithm>
std::vector<Measurement> prepare(Bench& bench) {
  require(bench.world().device().is_gpu(), Status::unavailable,
          "kernels that launch kernels need a GPU, and this rank has none");
  bench.require_alike();
  const auto loop = std::make_shared<ChainLoop<algorithm>>(bench);
  Measurement measurement{.operation = "barrier", .method = std::string("device_launched/") + name(algorithm)};
  measurement.most_iterations = most_iterations;
  measurement.settings = {{"control", "device_launched"},
                          {"blocks", std::uint64_t{1}},
                          {"threads_per_block", std::uint64_t{barrier_kernel_threads}}};
  measurement.time = [loop](Rounds rounds) { return loop->time(rounds); };
  measurement.verify = [loop](std::uint64_t seed) { return loop->verify(seed); };
  return {measurement};
}

#else

template <Algorithm>
std::vector<Measurement> prepare(Bench&) {
  throw Error(Status::unavailable, "kernels that launch kernels need a GPU, and this program was built without CUDA");
}

#endif

template <Algorithm algorithm>
Case device_launched_barrier() {
  return {"barrier", std::string("device_launched/") + name(algorithm), false,
          [](Bench& bench, std::uint64_t) { return prepare<algorithm>(bench); }};
}

}  // namespace

std::vector<Case> device_launched_barriers() {
  return {device_launched_barrier<Algorithm::alltoall>(), device_launched_barrier<Algorithm::flat>(),
          device_launched_barrier<Algorithm::dissemination>()};
}

}  // namespace beeline::bench
