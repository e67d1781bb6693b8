// SPDX-License-Identifier: Apache-2.0
// Relocatable device code: see CMakeLists.txt.
#include "device_launched/graphs.hpp"

#include <string>

#include "beeline/core/error.hpp"
#include "beeline/host/launch.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench {

#if BEELINE_COMPILES_CUDA

namespace {

/// Number of graphs that are launched in turn, because each runs a little longer than its answer takes.
constexpr std::uint32_t children = 4;
constexpr std::uint32_t warm_up = 8;
constexpr std::uint64_t longest_ns = 1'000'000'000;

struct Words {
  std::uint64_t answers, error, start, end;
};

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  require(error == cudaSuccess, Status::unavailable, std::string(call) + ": " + cudaGetErrorString(error));
}

__global__ void answer(Words* words) {
  const BareWord answers(words->answers);
  answers.store(answers.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

struct Children {
  cudaGraphExec_t graphs[children];
};

/// Launches a graph and waits for its answer: first as warm-up, then `iterations` times.
__global__ void launch_all(Children of, Words* words, std::uint32_t iterations) {
  const BareWord answers(words->answers);
  const std::uint64_t first = answers.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < warm_up + iterations; ++i) {
    const std::uint64_t now = machine::clock_ns();
    if (i == warm_up) words->start = now;
    const cudaError_t error = cudaGraphLaunch(of.graphs[i % children], cudaStreamGraphFireAndForget);
    if (error != cudaSuccess) {
      words->error = error;
      return;
    }
    while (answers.load(std::memory_order_acquire) != first + i + 1)
      if (machine::clock_ns() - now > longest_ns) return;
  }
  words->end = machine::clock_ns();
}

/// Makes a graph of one kernel.
template <class Add>
cudaGraphExec_t make_graph(unsigned long long flags, Add add) {
  cudaGraph_t graph = nullptr;
  check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  cudaGraphExec_t executable = nullptr;
  try {
    add(graph);
    check(cudaGraphInstantiate(&executable, graph, flags), "cudaGraphInstantiate");
  } catch (...) {
    static_cast<void>(cudaGraphDestroy(graph));
    throw;
  }
  static_cast<void>(cudaGraphDestroy(graph));
  return executable;
}
void add_kernel(cudaGraph_t graph, void* kernel, void** arguments) {
  cudaKernelNodeParams node{};
  node.func = kernel;
  node.gridDim = node.blockDim = dim3(1);
  node.kernelParams = arguments;
  cudaGraphNode_t added{};
  check(cudaGraphAddKernelNode(&added, graph, nullptr, 0, &node), "cudaGraphAddKernelNode");
}

}  // namespace

struct DeviceGraphs::State {
  explicit State(World& world) : world(world), words(world, 1) {}
  ~State() {
    for (const cudaGraphExec_t each : of.graphs)
      if (each != nullptr) static_cast<void>(cudaGraphExecDestroy(each));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  World& world;
  SymmetricArray<Words> words;
  Children of{};
};

DeviceGraphs::DeviceGraphs(World& world) {
  require(world.device().is_gpu(), Status::unavailable,
          "graphs that kernels launch need a GPU, and this rank has none");
  state_ = std::make_unique<State>(world);
  use_gpu(world.device().index);
  const auto stream = static_cast<cudaStream_t>(world.stream().native());
  Words* words = state_->words.data();
  void* arguments[] = {&words};
  for (cudaGraphExec_t& each : state_->of.graphs) {
    each = make_graph(cudaGraphInstantiateFlagDeviceLaunch,
                      [&](cudaGraph_t graph) { add_kernel(graph, reinterpret_cast<void*>(answer), arguments); });
    check(cudaGraphUpload(each, stream), "cudaGraphUpload");
  }
  world.synchronize();
}
DeviceGraphs::~DeviceGraphs() = default;

std::vector<double> DeviceGraphs::time(Rounds rounds) {
  World& world = state_->world;
  Words* words = state_->words.data();
  std::uint32_t iterations = rounds.iterations;
  void* arguments[] = {&state_->of, &words, &iterations};
  use_gpu(world.device().index);
  const cudaGraphExec_t parent =
      make_graph(0, [&](cudaGraph_t graph) { add_kernel(graph, reinterpret_cast<void*>(launch_all), arguments); });
  std::vector<double> times;
  for (std::uint32_t batch = 0; batch < rounds.batches; ++batch) {
    Words seen{};
    world.copy(words, &seen, sizeof seen);
    check(cudaGraphLaunch(parent, static_cast<cudaStream_t>(world.stream().native())), "cudaGraphLaunch");
    world.synchronize();
    world.copy(&seen, words, sizeof seen);
    require(seen.end != 0, Status::internal,
            std::string("graphs launched by a kernel: ") +
                (seen.error == 0 ? "one has not answered" : cudaGetErrorString(static_cast<cudaError_t>(seen.error))));
    times.push_back(static_cast<double>(seen.end - seen.start));
  }
  static_cast<void>(cudaGraphExecDestroy(parent));
  return times;
}

#else

struct DeviceGraphs::State {};
DeviceGraphs::DeviceGraphs(World&) {
  throw Error(Status::unavailable, "graphs that kernels launch need a GPU, and this program was built without CUDA");
}
DeviceGraphs::~DeviceGraphs() = default;
std::vector<double> DeviceGraphs::time(Rounds) { return {}; }

#endif

}  // namespace beeline::bench
