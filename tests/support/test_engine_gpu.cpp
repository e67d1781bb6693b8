// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/error.hpp"
#include "tests/support/change_word.hpp"
#include "tests/support/test_engine.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda_runtime_api.h>

#include <thread>
#endif

namespace beeline_test {

using namespace beeline;

#if BEELINE_COMPILES_CUDA

namespace {

__global__ void change_word_kernel(const Command command, void* word, std::uint64_t* result) {
  *result = change_word(command, word);
}

void check(cudaError_t state, const char* call) {
  require(state == cudaSuccess, Status::internal, std::string(call) + ": " + cudaGetErrorString(state));
}

/// Everything is asynchronous, on a stream that has worked before, so that kernels which wait for it may spin.
class GpuWorker final : public CommandWorker {
 public:
  explicit GpuWorker(const EngineClient& client) : gpu_(client.device.index) {
    check(cudaSetDevice(gpu_), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaHostAlloc(&results_, (engine_batch + 1) * sizeof(std::uint64_t), cudaHostAllocPortable), "cudaHostAlloc");
    check(cudaMalloc(&scratch_, sizeof(std::uint64_t)), "cudaMalloc");
    Command first{};
    first.verb = Verb::add;
    first.width = sizeof(std::uint64_t);
    change_word_kernel<<<1, 1, 0, stream_>>>(first, scratch_, results_);
    check(cudaGetLastError(), "the first kernel");
    check(cudaMemcpyAsync(scratch_, results_, sizeof(std::uint64_t), cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
    while (!over()) std::this_thread::yield();
  }
  ~GpuWorker() override {
    static_cast<void>(cudaSetDevice(gpu_));
    static_cast<void>(cudaStreamDestroy(stream_));
    static_cast<void>(cudaFree(scratch_));
    static_cast<void>(cudaFreeHost(results_));
  }
  GpuWorker(const GpuWorker&) = delete;
  GpuWorker& operator=(const GpuWorker&) = delete;

  void move(const Command& command, std::byte* remote) override {
    use_gpu_of_this_thread();
    auto* local = reinterpret_cast<std::byte*>(command.local);
    for (std::uint64_t row = 0; row < command.rows; ++row) {
      std::byte* const there = remote + row * command.remote_stride;
      std::byte* const here = local + row * command.local_stride;
      const bool puts = command.verb == Verb::put;
      check(cudaMemcpyAsync(puts ? there : here, puts ? here : there, command.row_bytes, cudaMemcpyDefault, stream_),
            "cudaMemcpyAsync");
    }
  }
  void change(const Command& command, std::byte* remote, std::size_t slot) override {
    use_gpu_of_this_thread();
    change_word_kernel<<<1, 1, 0, stream_>>>(command, remote, results_ + slot);
    check(cudaGetLastError(), "a kernel that changes a word");
  }
  bool over() override {
    use_gpu_of_this_thread();
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaStreamQuery");
    return true;
  }
  std::uint64_t result(std::size_t slot) const override {
    return static_cast<volatile const std::uint64_t*>(results_)[slot];
  }

 private:
  void use_gpu_of_this_thread() const { check(cudaSetDevice(gpu_), "cudaSetDevice"); }

  const int gpu_;
  cudaStream_t stream_ = nullptr;
  std::uint64_t* results_ = nullptr;
  std::uint64_t* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<CommandWorker> make_gpu_worker(const EngineClient& client) {
  return std::make_unique<GpuWorker>(client);
}

#else

std::unique_ptr<CommandWorker> make_gpu_worker(const EngineClient&) {
  throw Error(Status::unavailable, "this build has no CUDA");
}

#endif

}  // namespace beeline_test
