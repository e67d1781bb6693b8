// SPDX-License-Identifier: Apache-2.0
#include "peers/conditional_copy.hpp"

#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"

namespace beeline::bench {

#if BEELINE_COMPILES_CUDA && CUDART_VERSION >= 12040

namespace {

void check_copy(cudaError_t error, const char* call) {
  require(error == cudaSuccess, Status::unavailable, std::string(call) + ": " + cudaGetErrorString(error));
}

__global__ void look(cudaGraphConditionalHandle handle, const std::uint64_t* forbidden) {
  cudaGraphSetConditional(handle, *static_cast<const volatile std::uint64_t*>(forbidden) == 0 ? 1 : 0);
}

/// Adds a kernel that evaluates the condition, followed by the conditional node with the copy.
void build(cudaGraph_t graph, void* to, const void* from, std::size_t bytes, const std::uint64_t* forbidden) {
  cudaGraphConditionalHandle handle{};
  check_copy(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault),
             "cudaGraphConditionalHandleCreate");
  void* arguments[] = {&handle, &forbidden};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(look);
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = arguments;
  cudaGraphNode_t looks{}, decides{}, copies{};
  check_copy(cudaGraphAddKernelNode(&looks, graph, nullptr, 0, &kernel), "cudaGraphAddKernelNode");
  cudaGraphNodeParams conditional{};
  conditional.type = cudaGraphNodeTypeConditional;
  conditional.conditional.handle = handle;
  conditional.conditional.type = cudaGraphCondTypeIf;
  conditional.conditional.size = 1;
#if CUDART_VERSION >= 13000
  check_copy(cudaGraphAddNode(&decides, graph, &looks, nullptr, 1, &conditional), "cudaGraphAddNode");
#else
  check_copy(cudaGraphAddNode(&decides, graph, &looks, 1, &conditional), "cudaGraphAddNode");
#endif
  check_copy(cudaGraphAddMemcpyNode1D(&copies, conditional.conditional.phGraph_out[0], nullptr, 0, to, from, bytes,
                                      cudaMemcpyDefault),
             "cudaGraphAddMemcpyNode1D");
}

}  // namespace

ConditionalCopy::ConditionalCopy(Stream& stream, void* to, const void* from, std::size_t bytes,
                                 const std::uint64_t* forbidden)
    : stream_(stream) {
  require(stream.device().is_gpu(), Status::unavailable, "host ranks have no CUDA graphs");
  cudaGraph_t graph = nullptr;
  check_copy(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  cudaGraphExec_t executable = nullptr;
  try {
    build(graph, to, from, bytes, forbidden);
    check_copy(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  } catch (...) {
    static_cast<void>(cudaGraphDestroy(graph));
    throw;
  }
  static_cast<void>(cudaGraphDestroy(graph));
  executable_ = executable;
}

ConditionalCopy::~ConditionalCopy() {
  static_cast<void>(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_)));
}

void ConditionalCopy::launch() {
  check_copy(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), static_cast<cudaStream_t>(stream_.native())),
             "cudaGraphLaunch");
}

#else

ConditionalCopy::ConditionalCopy(Stream& stream, void*, const void*, std::size_t, const std::uint64_t*)
    : stream_(stream) {
  throw Error(Status::unavailable, "this build has no CUDA graphs with conditional nodes");
}
ConditionalCopy::~ConditionalCopy() = default;
void ConditionalCopy::launch() { static_cast<void>(stream_); }

#endif

}  // namespace beeline::bench
