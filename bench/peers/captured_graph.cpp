// SPDX-License-Identifier: Apache-2.0
#include "peers/captured_graph.hpp"

#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"

namespace beeline::bench {

#if BEELINE_COMPILES_CUDA

namespace {

__global__ void do_nothing() {}

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

void check(cudaError_t error, const char* call) {
  require(error == cudaSuccess, Status::unavailable, std::string(call) + ": " + cudaGetErrorString(error));
}

/// Ends the capture that failed, and clears the error that CUDA keeps for it.
void give_up(Stream& stream) {
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(native(stream), &graph));
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());
}

cudaGraph_t capture(Stream& stream, const std::function<void()>& calls) {
  check(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    calls();
  } catch (const std::exception& error) {
    give_up(stream);
    throw Error(Status::unavailable, std::string("cannot be captured in a graph: ") + error.what());
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t result = cudaStreamEndCapture(native(stream), &graph);
  if (result != cudaSuccess) static_cast<void>(cudaGetLastError());
  check(result, "cannot be captured in a graph: cudaStreamEndCapture");
  return graph;
}

}  // namespace

CapturedGraph::CapturedGraph(Stream& stream, const std::function<void()>& calls) : stream_(stream) {
  require(stream.device().is_gpu(), Status::unavailable, "host ranks have no CUDA graphs");
  cudaGraph_t graph = capture(stream, calls);
  cudaGraphExec_t executable = nullptr;
  const cudaError_t result = cudaGraphInstantiate(&executable, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  check(result, "cudaGraphInstantiate");
  executable_ = executable;
}

CapturedGraph::~CapturedGraph() { static_cast<void>(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_))); }

void CapturedGraph::launch() {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), native(stream_)), "cudaGraphLaunch");
}

void launch_empty_kernel(Stream& stream) {
  do_nothing<<<1, 1, 0, native(stream)>>>();
  check(cudaGetLastError(), "an empty kernel");
}

#else

CapturedGraph::CapturedGraph(Stream& stream, const std::function<void()>&) : stream_(stream) {
  throw Error(Status::unavailable, "host ranks have no CUDA graphs");
}
CapturedGraph::~CapturedGraph() = default;
void CapturedGraph::launch() { static_cast<void>(stream_); }
void launch_empty_kernel(Stream&) { throw Error(Status::unavailable, "this build has no CUDA"); }

#endif

}  // namespace beeline::bench
