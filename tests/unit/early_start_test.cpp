// SPDX-License-Identifier: Apache-2.0
// Kernels that are set up while the stream's earlier kernel ends, which requires code that waits for that end. Needs a
// GPU; the graph of two captured launches shows how the second one depends on the first.
#include <gtest/gtest.h>

#include <string>

#include "beeline/host/launch.hpp"
#include "tests/support/ranks.hpp"
#include "tests/unit/graph.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

/// Adds the number of the architecture that the kernel was compiled for.
template <bool Early>
struct AddArchitecture {
  static constexpr bool starts_early = Early;
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, int* sum) const {
#ifdef __CUDA_ARCH__
    if (grid.thread_rank() == 0) *sum += __CUDA_ARCH__ / 10;
#else
    static_cast<void>(grid), static_cast<void>(sum);
#endif
  }
};

template <bool Early>
void add_twice(World& world, int* sum) {
  for (int i = 0; i < 2; ++i) launch(world, {}, AddArchitecture<Early>{}, sum);
}

/// The dependency of the second kernel of `add_twice` on the first.
template <bool Early>
auto dependency(World& world, int* sum) {
  const auto stream = static_cast<cudaStream_t>(world.stream().native());
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add_twice<Early>(world, sum);
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(stream, &graph));
  std::size_t count = 1;
  cudaGraphNode_t from = nullptr, to = nullptr;
  cudaGraphEdgeData edge{};
  must(cudaGraphGetEdges(graph, &from, &to, &edge, &count));
  must(cudaGraphDestroy(graph));
  BEELINE_CHECK_EQ(std::size_t{1}, count);
  return static_cast<cudaGraphDependencyType>(edge.type);
}

TEST(EarlyStart, IsAskedForWhereTheCodeWaits) {
  std::string why;
  if (gpus_here(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  Config config = test_config();
  config.device = "cuda:0";
  const auto body = [](World& world) {
    must(cudaSetDevice(world.device().index));
    const SymmetricArray<int> sum(world, 1);
    add_twice<true>(world, sum.data());
    world.synchronize();
    int twice = 0;
    world.copy(&twice, sum.data(), sizeof twice);
    const KernelCode code = detail::RegisteredKernel<AddArchitecture<true>, int*>::code();
    const int architecture = kernel_architecture(code, world.device().index);
    BEELINE_CHECK_EQ(twice, 2 * architecture);
    BEELINE_CHECK(dependency<true>(world, sum.data()) ==
                  (architecture >= 90 ? cudaGraphDependencyTypeProgrammatic : cudaGraphDependencyTypeDefault));
    BEELINE_CHECK(dependency<false>(world, sum.data()) == cudaGraphDependencyTypeDefault);
  };
  expect_all_passed(run_ranks(WorldKind::threads, 1, body, config, 60));
}

}  // namespace

}  // namespace beeline_test
