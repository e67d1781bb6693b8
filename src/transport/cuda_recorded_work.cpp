// SPDX-License-Identifier: Apache-2.0
// Recorded work is a CUDA graph.
#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "runtime/cuda.hpp"
#include "transport/recorded_work.hpp"

namespace beeline {

namespace {

using cuda_api::BesideCaptures;
using cuda_api::check;
using cuda_api::CurrentGpu;

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

using HeldGraph = std::unique_ptr<CUgraph_st, void (*)(cudaGraph_t)>;

class GpuGraph final : public RecordedWork {
 public:
  GpuGraph(int gpu, cudaGraph_t graph) : gpu_(gpu) {
    const BesideCaptures beside;
    check(cudaGraphInstantiate(&executable_, graph, 0), "cudaGraphInstantiate");
  }
  /// A graph for launches by kernels; uploaded to the device when the constructor returns.
  GpuGraph(int gpu, cudaGraph_t graph, cudaStream_t stream) : gpu_(gpu) {
    const BesideCaptures beside;
    const cudaError_t refused = cudaGraphInstantiate(&executable_, graph, cudaGraphInstantiateFlagDeviceLaunch);
    if (refused != cudaSuccess) static_cast<void>(cudaGetLastError());
    require(refused == cudaSuccess, Status::unavailable,
            fmt::format("the driver makes no graph that kernels launch: {} ({})", cudaGetErrorString(refused),
                        cudaGetErrorName(refused)));
    try {
      check(cudaGraphUpload(executable_, stream), "cudaGraphUpload");
      check(cudaStreamSynchronize(stream), "cudaGraphUpload");
    } catch (...) {
      static_cast<void>(cudaGraphExecDestroy(executable_));
      throw;
    }
  }
  ~GpuGraph() override {
    const BesideCaptures beside;
    static_cast<void>(cudaGraphExecDestroy(executable_));  // takes effect when the graph's runs are over
  }
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  void run(Stream& stream) override {
    const CurrentGpu current(gpu_);
    check(cudaGraphLaunch(executable_, native(stream)), "cudaGraphLaunch");
  }
  [[nodiscard]] std::uint64_t handle() const override { return reinterpret_cast<std::uint64_t>(executable_); }

 private:
  int gpu_;
  cudaGraphExec_t executable_ = nullptr;
};

/// Ends a failed capture, and clears the error that CUDA keeps of it.
void give_up(Stream& stream) {
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(native(stream), &graph));
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());
}

/// Captures the work that `work` puts on a stream of the current GPU.
HeldGraph capture(Stream& stream, const std::function<void()>& work) {
  check(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    work();
  } catch (...) {
    give_up(stream);
    throw;
  }
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(native(stream), &graph), "cudaStreamEndCapture");
  return {graph, [](cudaGraph_t last) { static_cast<void>(cudaGraphDestroy(last)); }};
}

}  // namespace

std::unique_ptr<RecordedWork> record_work(Stream& stream, const std::function<void()>& work) {
  const int gpu = stream.device().index;
  const CurrentGpu current(gpu);
  return std::make_unique<GpuGraph>(gpu, capture(stream, work).get());
}

std::unique_ptr<RecordedWork> record_for_kernels(Stream& stream, const std::function<void()>& work) {
  const int gpu = stream.device().index;
  const CurrentGpu current(gpu);
  return std::make_unique<GpuGraph>(gpu, capture(stream, work).get(), native(stream));
}

}  // namespace beeline
