// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// CUDA graphs that tests capture, and the ranks that run them.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "beeline/host/world.hpp"
#include "beeline/transports/transports.hpp"
#include "tests/support/check.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

inline void must(cudaError_t result) {
  if (result != cudaSuccess) throw CheckFailure(cudaGetErrorString(result));
}
inline cudaStream_t native(const beeline::Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

/// A graph of the operations that `work` starts on a stream, ready to run.
class Graph {
 public:
  Graph(beeline::World& world, beeline::Stream& stream, const std::function<void()>& work) {
    must(cudaSetDevice(world.device().index));
    must(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal));
    try {
      work();
    } catch (...) {
      static_cast<void>(cudaStreamEndCapture(native(stream), &graph_));
      if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
      throw;
    }
    must(cudaStreamEndCapture(native(stream), &graph_));
    must(cudaGraphInstantiate(&runnable_, graph_, 0));
    must(cudaGraphUpload(runnable_, native(stream)));
    world.synchronize(stream);
  }
  ~Graph() {
    static_cast<void>(cudaGraphExecDestroy(runnable_));
    static_cast<void>(cudaGraphDestroy(graph_));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void run(const beeline::Stream& stream) const { must(cudaGraphLaunch(runnable_, native(stream))); }
  [[nodiscard]] std::size_t nodes() const {
    std::size_t count = 0;
    must(cudaGraphGetNodes(graph_, nullptr, &count));
    return count;
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t runnable_ = nullptr;
};

/// A word that a rank sends in a step.
BEELINE_HOST_DEVICE inline std::uint64_t word_of(std::uint64_t step, std::uint64_t index, std::uint64_t rank) {
  return step * 1009 + index * 2 + rank;
}

/// Two ranks that are threads, on the given number of GPUs.
class TwoRanks : public ::testing::TestWithParam<int> {
 protected:
  ///   nodes  of the world, 1 or 2
  void run(const std::function<void(beeline::World&)>& body, int nodes = 1) const {
    if (const std::string why = missing_gpus(GetParam()); !why.empty()) GTEST_SKIP() << why;
    if (const std::string why = nodes > 1 ? beeline::no_network_reason() : ""; !why.empty()) GTEST_SKIP() << why;
    beeline::Config config = test_config(GetParam() == 1 ? "cuda:0" : "cuda:0,1");
    config.split_nodes = nodes;
    expect_all_passed(run_ranks(WorldKind::threads, 2, body, config, 100));
  }
};

}  // namespace beeline_test
