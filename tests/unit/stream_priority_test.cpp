// SPDX-License-Identifier: Apache-2.0
// Priorities of streams, as CUDA reports them. Needs a GPU; those of host ranks are tested in launch_test.cpp.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "beeline/host/launch.hpp"
#include "tests/support/ranks.hpp"
#include "tests/unit/graph.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

int cuda_priority_of(const Stream& stream) {
  int priority = 0;
  must(cudaStreamGetPriority(native(stream), &priority));
  return priority;
}

/// CUDA's number for the greatest stream priority of the current GPU.
int greatest_priority() {
  int least = 0, greatest = 0;
  must(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  return greatest;
}

struct Increment {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, int* number) const {
    if (grid.thread_rank() == 0) ++*number;
  }
};

/// Priorities of the kernels that `work` launches on `stream`, taken from a captured graph.
template <class Work>
std::vector<int> priorities_in_graph(const Stream& stream, Work work) {
  must(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal));
  work();
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(native(stream), &graph));
  std::size_t count = 0;
  must(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  must(cudaGraphGetNodes(graph, nodes.data(), &count));
  std::vector<int> priorities;
  for (const cudaGraphNode_t node : nodes) {
    cudaKernelNodeAttrValue value{};
    must(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &value));
    priorities.push_back(value.priority);
  }
  must(cudaGraphDestroy(graph));
  return priorities;
}

template <class Body>
void run_on_gpu(Body body) {
  std::string why;
  if (gpus_here(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  Config config = test_config();
  config.device = "cuda:0";
  expect_all_passed(run_ranks(WorldKind::threads, 1, body, config, 60));
}

void check_priority(World& world, StreamPriority priority, int expected) {
  const std::unique_ptr<Stream> stream = world.make_stream(priority);
  BEELINE_CHECK_EQ(expected, cuda_priority_of(*stream));
  const SymmetricArray<int> number(world, 1);
  const auto increment = [&] { launch(world, {.stream = stream.get()}, Increment{}, number.data()); };
  increment();
  world.synchronize(*stream);
  int result = 0;
  world.copy(&result, number.data(), sizeof result);
  BEELINE_CHECK_EQ(1, result);
  BEELINE_CHECK(priorities_in_graph(*stream, increment) == std::vector{expected});
}

TEST(StreamPriority, HoldsForTheStreamAndForItsKernelsInGraphs) {
  run_on_gpu([](World& world) {
    must(cudaSetDevice(world.device().index));
    BEELINE_CHECK_EQ(0, cuda_priority_of(world.stream()));
    check_priority(world, StreamPriority::normal, 0);
    check_priority(world, StreamPriority::high, greatest_priority());
  });
}

TEST(StreamPriority, OfAnAdoptedStreamIsItsOwners) {
  run_on_gpu([](World& world) {
    must(cudaSetDevice(world.device().index));
    cudaStream_t theirs = nullptr;
    must(cudaStreamCreateWithPriority(&theirs, cudaStreamNonBlocking, greatest_priority()));
    {
      const std::unique_ptr<Stream> stream = world.adopt_stream(theirs);
      BEELINE_CHECK_EQ(greatest_priority(), cuda_priority_of(*stream));
    }
    must(cudaStreamDestroy(theirs));
  });
}

}  // namespace

}  // namespace beeline_test
