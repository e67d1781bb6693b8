// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// CUDA graphs that tests capture.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "beeline/host/world.hpp"
#include "tests/support/check.hpp"

namespace beeline_test {

inline void must(cudaError_t result) {
  if (result != cudaSuccess) throw CheckFailure(cudaGetErrorString(result));
}
inline cudaStream_t native(const beeline::Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

/// A graph of what `work` puts on a stream, ready to run.
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

}  // namespace beeline_test
