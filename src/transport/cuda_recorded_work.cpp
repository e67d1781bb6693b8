// SPDX-License-Identifier: Apache-2.0
// Recorded work is a CUDA graph.
#include "runtime/cuda.hpp"
#include "transport/recorded_work.hpp"

namespace beeline {

namespace {

using cuda_api::BesideCaptures;
using cuda_api::check;
using cuda_api::CurrentGpu;

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

class GpuGraph final : public RecordedWork {
 public:
  GpuGraph(int gpu, cudaGraph_t graph) : gpu_(gpu) {
    const BesideCaptures beside;
    check(cudaGraphInstantiate(&executable_, graph, 0), "cudaGraphInstantiate");
  }
  ~GpuGraph() override {
    const BesideCaptures beside;
    static_cast<void>(cudaGraphExecDestroy(executable_));  // takes effect when its runs are over
  }
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  void run(Stream& stream) override {
    const CurrentGpu current(gpu_);
    check(cudaGraphLaunch(executable_, native(stream)), "cudaGraphLaunch");
  }

 private:
  int gpu_;
  cudaGraphExec_t executable_ = nullptr;
};

/// Ends a capture that has failed, and forgets the error that CUDA keeps of it.
void give_up(Stream& stream) {
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(native(stream), &graph));
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());
}

}  // namespace

std::unique_ptr<RecordedWork> record_work(Stream& stream, const std::function<void()>& work) {
  const int gpu = stream.device().index;
  const CurrentGpu current(gpu);
  check(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    work();
  } catch (...) {
    give_up(stream);
    throw;
  }
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(native(stream), &graph), "cudaStreamEndCapture");
  const std::unique_ptr<CUgraph_st, void (*)(cudaGraph_t)> held(
      graph, [](cudaGraph_t last) { static_cast<void>(cudaGraphDestroy(last)); });
  return std::make_unique<GpuGraph>(gpu, graph);
}

}  // namespace beeline
