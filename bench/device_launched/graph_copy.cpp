// SPDX-License-Identifier: Apache-2.0
/// @file
/// Relocatable device code: see CMakeLists.txt. Source: CUDA C++ Programming Guide, device graph launch; seed 000, 6.5.

#include "device_launched/graph_copy.hpp"

#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda_runtime.h>

#include <chrono>
#include <thread>

#include "beeline/device/impl/atomic_word.hpp"
#include "beeline/device/impl/machine.hpp"
#endif

namespace beeline::bench {

#if BEELINE_COMPILES_CUDA

namespace {

/// Words that the kernel, the graph and the host share, in GPU memory.
enum Word : std::uint8_t { number, copied_number, nanoseconds, error_code, word_count };

__global__ void launch_copy(cudaGraphExec_t copy, std::uint64_t* words, std::uint64_t deadline_ns) {
  using Shared = machine::SystemAtomic<std::uint64_t>;
  const std::uint64_t next = words[number] + 1;
  Shared(words[number]).store(next, std::memory_order_release);
  const std::uint64_t start = machine::clock_ns();
  const cudaError_t launched = cudaGraphLaunch(copy, cudaStreamGraphFireAndForget);
  words[error_code] = launched;
  if (launched != cudaSuccess) return;
  std::uint64_t now = start;
  while (Shared(words[copied_number]).load(std::memory_order_acquire) != next) {
    now = machine::clock_ns();
    if (now - start < deadline_ns) continue;
    words[error_code] = cudaErrorTimeout;
    return;
  }
  words[nanoseconds] = machine::clock_ns() - start;
}

void check(cudaError_t result, const char* call, Status status = Status::internal) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw Error(status, std::string(call) + ": " + cudaGetErrorString(result));
}

/// A graph that is captured from a stream.
class Graph {
 public:
  template <class Enqueue>
  Graph(cudaStream_t stream, Enqueue enqueue) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    const cudaError_t enqueued = enqueue();
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph_);
    check(enqueued, "what is captured", Status::unavailable);
    check(ended, "cudaStreamEndCapture", Status::unavailable);
  }
  ~Graph() {
    if (exec_ != nullptr) static_cast<void>(cudaGraphExecDestroy(exec_));
    if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Instantiates the graph, and uploads it.
  cudaGraphExec_t make(cudaStream_t stream, unsigned long long flags) {
    check(cudaGraphInstantiate(&exec_, graph_, flags), "cudaGraphInstantiate", Status::unavailable);
    check(cudaGraphUpload(exec_, stream), "cudaGraphUpload", Status::unavailable);
    check(cudaStreamSynchronize(stream), "cudaGraphUpload");
    return exec_;
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

class CudaGraphCopy final : public GraphCopy {
 public:
  CudaGraphCopy(std::byte* destination, const std::byte* source, std::uint64_t bytes, std::uint64_t* words,
                std::uint64_t deadline_ns)
      : words_(words), deadline_ns_(deadline_ns),
        copy_(stream_.stream,
              [&] {
                const cudaError_t copied =
                    cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToDevice, stream_.stream);
                if (copied != cudaSuccess) return copied;
                return cudaMemcpyAsync(words + copied_number, words + number, sizeof *words, cudaMemcpyDeviceToDevice,
                                       stream_.stream);
              }),
        launched_(copy_.make(stream_.stream, cudaGraphInstantiateFlagDeviceLaunch)),
        parent_(stream_.stream,
                [&] {
                  launch_copy<<<1, 1, 0, stream_.stream>>>(launched_, words_, deadline_ns_);
                  return cudaGetLastError();
                }),
        launcher_(parent_.make(stream_.stream, 0)) {
    check(cudaMemset(words, 0, word_count * sizeof *words), "cudaMemset");
  }

  double run() override {
    check(cudaGraphLaunch(launcher_, stream_.stream), "cudaGraphLaunch");
    await();
    std::uint64_t words[word_count];
    check(cudaMemcpy(words, words_, sizeof words, cudaMemcpyDeviceToHost), "cudaMemcpy");
    const auto error = static_cast<cudaError_t>(words[error_code]);
    check(error, "a graph that a kernel launched", error == cudaErrorTimeout ? Status::deadline : Status::internal);
    return static_cast<double>(words[nanoseconds]);
  }

 private:
  struct OwnStream {
    OwnStream() { check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate"); }
    ~OwnStream() { static_cast<void>(cudaStreamDestroy(stream)); }
    cudaStream_t stream = nullptr;
  };
  /// Waits for the kernel, which ends by the deadline, and for the graph's copies after it.
  void await() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(2 * deadline_ns_);
    for (cudaError_t state; (state = cudaStreamQuery(stream_.stream)) != cudaSuccess;) {
      if (state != cudaErrorNotReady) check(state, "a kernel that launches a graph");
      if (std::chrono::steady_clock::now() > end)
        throw Error(Status::deadline, "a kernel that launches a graph has not ended by the deadline");
      std::this_thread::yield();
    }
  }

  const OwnStream stream_;
  std::uint64_t* const words_;
  const std::uint64_t deadline_ns_;
  Graph copy_;
  const cudaGraphExec_t launched_;
  Graph parent_;
  const cudaGraphExec_t launcher_;
};

}  // namespace

std::unique_ptr<GraphCopy> make_graph_copy(std::byte* destination, const std::byte* source, std::uint64_t bytes,
                                           std::uint64_t* words, std::uint64_t deadline_ns) {
  return std::make_unique<CudaGraphCopy>(destination, source, bytes, words, deadline_ns);
}

#else

std::unique_ptr<GraphCopy> make_graph_copy(std::byte*, const std::byte*, std::uint64_t, std::uint64_t*, std::uint64_t) {
  throw Error(Status::unavailable, "kernels launch no graphs in a program that was built without CUDA");
}

#endif

}  // namespace beeline::bench
