// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/error.hpp"
#include "control/change_word.hpp"
#include "control/command_worker.hpp"
#include "control/mapped_memory.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>
#include <thread>

#include "memory/gpu_pointers.hpp"
#endif

namespace beeline {

#if BEELINE_COMPILES_CUDA

namespace {

__global__ void change_word_kernel(const Command command, void* word, std::uint64_t* result) {
  *result = detail::change_word(command, word);
}

void check(cudaError_t state, const char* call) {
  require(state == cudaSuccess, Status::internal, std::string(call) + ": " + cudaGetErrorString(state));
}

/// In pinned memory: what kernels give back, and payloads of commands.
struct WorkerMemory {
  std::uint64_t results[command_batch];
  std::byte payloads[command_batch][max_inline_bytes];
};

/// Everything is asynchronous, on a stream that has worked before, so that kernels which wait for it may spin. Words in
/// host memory are stored by the CPU while the stream has nothing to do.
class GpuWorker final : public CommandWorker {
 public:
  explicit GpuWorker(const EngineClient& client)
      : gpu_(client.device.index), destinations_(client), sources_(client), is_host_memory_(client.is_host_memory) {
    check(cudaSetDevice(gpu_), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaHostAlloc(&memory_, sizeof(WorkerMemory), cudaHostAllocPortable), "cudaHostAlloc");
    check(cudaMalloc(&scratch_, sizeof(std::uint64_t)), "cudaMalloc");
    Command first{};
    first.verb = Verb::add;
    first.width = sizeof(std::uint64_t);
    change_word_kernel<<<1, 1, 0, stream_>>>(first, scratch_, memory_->results);
    check(cudaGetLastError(), "the first kernel");
    check(cudaMemcpyAsync(scratch_, memory_->payloads, sizeof(std::uint64_t), cudaMemcpyDefault, stream_),
          "cudaMemcpyAsync");
    is_busy_ = true;
    while (!over()) std::this_thread::yield();
  }
  ~GpuWorker() override {
    static_cast<void>(cudaSetDevice(gpu_));
    static_cast<void>(cudaStreamDestroy(stream_));
    static_cast<void>(cudaFree(scratch_));
    static_cast<void>(cudaFreeHost(memory_));
  }
  GpuWorker(const GpuWorker&) = delete;
  GpuWorker& operator=(const GpuWorker&) = delete;

  const char* begin(const Command& command, std::byte* remote, std::size_t slot) override {
    auto* local = reinterpret_cast<std::byte*>(command.local);
    switch (command.verb) {
      case Verb::put:
      case Verb::copy:
        return move(remote, local, command, {command.remote_stride, command.local_stride});
      case Verb::get:
        return move(local, remote, command, {command.local_stride, command.remote_stride});
      case Verb::put_inline:
        put_inline(command, remote, slot);
        return nullptr;
      default:
        change(command, remote, slot);
        return nullptr;
    }
  }
  std::size_t batch_bytes() const override { return std::size_t{64} << 20; }  // so that gaps between batches are short
  bool over() override {
    if (!is_busy_) return true;
    use_gpu_of_this_thread();
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaStreamQuery");
    is_busy_ = false;
    return true;
  }
  std::uint64_t result(std::size_t slot) const override {
    return static_cast<volatile const std::uint64_t*>(memory_->results)[slot];
  }

 private:
  struct Strides {
    std::uint64_t to, from;
  };

  void use_gpu_of_this_thread() const { check(cudaSetDevice(gpu_), "cudaSetDevice"); }
  void begin_on_stream() {
    use_gpu_of_this_thread();
    is_busy_ = true;
  }

  const char* move(std::byte* to, const std::byte* from, const Command& command, Strides strides) {
    begin_on_stream();
    const std::uint64_t before_last = command.rows - 1;
    if (!reaches(destinations_, to, before_last * strides.to + command.row_bytes) ||
        !reaches(sources_, from, before_last * strides.from + command.row_bytes))
      return "memory of its poster is not there, or not for its GPU";
    for (std::uint64_t row = 0; row < command.rows; ++row)
      if (cudaMemcpyAsync(to + row * strides.to, from + row * strides.from, command.row_bytes, cudaMemcpyDefault,
                          stream_) != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        return "CUDA does not copy what its poster names";
      }
    return nullptr;
  }
  static bool reaches(MappedMemory& symmetric, const std::byte* address, std::size_t bytes) {
    if (symmetric.holds(address, bytes)) return true;
    const gpu_memory::PointerInfo info = gpu_memory::describe(address);
    if (info.kind != gpu_memory::PointerKind::device) return info.kind != gpu_memory::PointerKind::host;
    return bytes <= gpu_memory::bytes_behind(address, info.gpu);
  }
  void put_inline(const Command& command, std::byte* remote, std::size_t slot) {
    if (!is_busy_ && is_host_memory_(remote)) {
      std::memcpy(remote, &command.local, command.width);
      return;
    }
    begin_on_stream();
    std::memcpy(memory_->payloads[slot], &command.local, command.width);
    check(cudaMemcpyAsync(remote, memory_->payloads[slot], command.width, cudaMemcpyDefault, stream_),
          "cudaMemcpyAsync");
  }
  void change(const Command& command, std::byte* remote, std::size_t slot) {
    if (!is_busy_ && command.verb == Verb::store && is_host_memory_(remote)) {
      static_cast<void>(detail::change_word(command, remote));
      return;
    }
    begin_on_stream();
    change_word_kernel<<<1, 1, 0, stream_>>>(command, remote, memory_->results + slot);
    check(cudaGetLastError(), "a kernel that changes a word");
  }

  const int gpu_;
  MappedMemory destinations_, sources_;
  const std::function<bool(const void*)> is_host_memory_;
  cudaStream_t stream_ = nullptr;
  WorkerMemory* memory_ = nullptr;
  std::uint64_t* scratch_ = nullptr;
  bool is_busy_ = false;  ///< the stream may have work
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

}  // namespace beeline
