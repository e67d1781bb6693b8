// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/error.hpp"
#include "beeline/device/wait.hpp"
#include "control/command_worker.hpp"
#include "control/mapped_memory.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "control/copy_if_there.hpp"
#include "control/window_stores.hpp"
#include "memory/gpu_pointers.hpp"
#include "runtime/cuda.hpp"
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

/// In pinned memory: results of kernels, payloads of commands, the number of submissions that have ended, and a buffer
/// for memory that CUDA has not pinned.
struct WorkerMemory {
  std::uint64_t results[command_batch * batches_under_way];
  std::byte payloads[command_batch * batches_under_way][max_inline_bytes];
  alignas(64) std::uint64_t ended;  ///< submissions that have ended; stored by the stream
  std::byte bounce[std::size_t{256} << 10];
};

/// All work is asynchronous, on a stream that was warmed, so that kernels that wait for it may spin. Words in host
/// memory, and in GPU memory with a window, are stored by the CPU while the stream has no work of their ring; the count
/// for posters is then stored by the CPU, too. Other words in GPU memory, and their counts, are stored by the stream
/// (memory operations, several in one call), without a kernel. Atomics run as kernels of one thread; those on host
/// memory by the CPU, if kernels have none there.
class GpuWorker final : public CommandWorker {
 public:
  GpuWorker(const EngineClient& client, const GpuWindows* windows)
      : gpu_(client.device.index), deadline_ns_(client.context.deadline_ns),
        cpu_changes_host_words_(client.cpu_changes_host_words), stores_(windows), destinations_(client),
        sources_(client) {
    check(cudaSetDevice(gpu_), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaHostAlloc(&memory_, sizeof(WorkerMemory), cudaHostAllocPortable), "cudaHostAlloc");
    check(cudaMalloc(&scratch_, sizeof(std::uint64_t)), "cudaMalloc");
    memory_->ended = 0;
    Command first{};
    first.verb = Verb::add;
    first.width = sizeof(std::uint64_t);
    change_word_kernel<<<1, 1, 0, stream_>>>(first, scratch_, memory_->results);
    check(cudaGetLastError(), "the first kernel");
    check(cudaMemcpyAsync(scratch_, memory_->payloads, sizeof(std::uint64_t), cudaMemcpyDefault, stream_),
          "cudaMemcpyAsync");
    write(scratch_, 0, sizeof *scratch_);
    issue_writes();
    drain();
    submission_is_busy_ = ring_is_busy_ = false;
  }
  ~GpuWorker() override {
    static_cast<void>(cudaSetDevice(gpu_));
    static_cast<void>(cudaStreamDestroy(stream_));
    static_cast<void>(cudaFree(scratch_));
    static_cast<void>(cudaFreeHost(memory_));
  }

  void begin_ring(bool is_under_way, bool* own_is_under_way) override {
    ring_is_busy_ = is_under_way;
    stores_.begin_ring(own_is_under_way);
  }
  bool end_ring(std::uint64_t* mirror, std::uint64_t done) override {
    if (!ring_is_busy_) {
      stores_.mirror_later(mirror, done);
      return stores_.ring_has_gpu_stores();
    }
    if (rings_++ < most_mirrors && mirror != nullptr) mirrors_[rings_ - 1] = {mirror, done};
    return true;
  }
  /// A GPU stores about a million words a second in all. So if a submission has few rings, the stream publishes their
  /// counts; otherwise this thread does. After the counts the stream stores a word in host memory for this thread.
  /// Polling this word is faster than querying the driver, and does not delay other threads that call the driver.
  std::uint64_t submit() override {
    stores_.settle();
    ends_with_[++begun_ % ends_with_.size()] = submitted_;
    const std::size_t rings = std::exchange(rings_, 0);
    const auto mirrors = std::exchange(mirrors_, {});
    if (!submission_is_busy_) return begun_;  // no ring gave the stream any work, so there is no end to wait for
    if (rings <= most_mirrors)
      for (std::size_t i = 0; i < rings; ++i)
        if (mirrors[i].word != nullptr) write(mirrors[i].word, mirrors[i].done, sizeof mirrors[i].done);
    write(&memory_->ended, ++submitted_, sizeof submitted_);
    issue_writes();
    submission_is_busy_ = false;
    ends_with_[begun_ % ends_with_.size()] = submitted_;
    return begun_;
  }
  void publish_counts() override { stores_.publish_counts(); }
  std::size_t batch_bytes() const override { return std::size_t{64} << 20; }  // so that gaps between batches are short
  bool over(std::uint64_t submission) override {
    const std::uint64_t last = ends_with_[submission % ends_with_.size()];
    if (detail::SystemAtomic<std::uint64_t>(memory_->ended).load(std::memory_order_acquire) >= last) return true;
    if (++looks_ % looks_per_query == 0) static_cast<void>(over());  // the word would not show a fault
    return false;
  }
  bool over() override {
    if (!is_busy_) return true;
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaStreamQuery");
    is_busy_ = false;
    return true;
  }
  void enter_thread() override { use_gpu_in_this_thread(); }  // CUDA gives other threads a context on GPU 0
  std::uint64_t cpu_stores() const override { return stores_.count(); }
  std::uint64_t result(std::size_t slot) const override {
    return static_cast<volatile const std::uint64_t*>(memory_->results)[slot];
  }

 private:
  struct Mirror {
    std::uint64_t *word = nullptr, done = 0;
  };
  /// Most rings whose counts the stream publishes.
  static constexpr std::size_t most_mirrors = 2;
  /// Number of looks at the word between two queries of the driver.
  static constexpr std::uint32_t looks_per_query = 1 << 16;
  /// Most writes of one call; the driver accepts 256.
  static constexpr std::size_t most_writes = 128;
  static constexpr const char* not_there = "memory of its poster is not there, or not for its GPU";

  void use_gpu_in_this_thread() const {
    static thread_local int current = -1;
    if (current != gpu_) check(cudaSetDevice(gpu_), "cudaSetDevice");
    current = gpu_;
  }
  /// Orders the stream's next work after the collected writes.
  void begin_on_stream() {
    use_gpu_in_this_thread();
    issue_writes();
    begin_busy();
  }
  /// The stream does the next work, after the CPU's stores for this ring.
  void begin_busy() {
    if (!ring_is_busy_) stores_.settle();
    is_busy_ = ring_is_busy_ = submission_is_busy_ = true;
  }

  /// The address at which the CPU stores bytes for `remote`; nullptr if the stream stores them.
  std::byte* place_of_cpu(std::byte* remote, std::size_t bytes) {
    if (ring_is_busy_) return nullptr;
    return stores_.place(remote, bytes, destinations_.holds_in_host_memory(remote, bytes));
  }

  /// Adds a store of 4 or 8 bytes to those that are issued together. Each store follows all earlier work of the stream,
  /// and is visible to any reader that sees a later one.
  void write(void* to, std::uint64_t value, std::size_t width) {
    if (writes_ == most_writes) issue_writes();
    CUstreamBatchMemOpParams& params = params_[writes_++];
    params = {};
    params.writeValue.address = reinterpret_cast<CUdeviceptr>(to);
    params.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    if (width == sizeof value) {
      params.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
      params.writeValue.value64 = value;
    } else {
      params.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
      params.writeValue.value = static_cast<cuuint32_t>(value);
    }
    begin_busy();
  }
  void issue_writes() {
    if (writes_ == 0) return;
    use_gpu_in_this_thread();
    cuda_api::check(cuda_api::driver().stream_batch(stream_, static_cast<unsigned>(writes_), params_.data(), 0),
                    "cuStreamBatchMemOp");
    writes_ = 0;
  }
  /// Whether the stream stores such bytes by memory operations.
  static bool is_written(const std::byte* to, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(to);
    return bytes == 4 ? address % 4 == 0 : bytes % 8 == 0 && address % 8 == 0;
  }

  /// How memory that a command names can be copied.
  enum class Reach { none, by_cuda, pageable };

  const char* move(const RowMove& rows) override {
    begin_on_stream();
    const Reach there = rows.is_writable ? Reach::by_cuda : reach_of(destinations_, rows.to, rows.to_span());
    const Reach here = rows.is_readable ? Reach::by_cuda : reach_of(sources_, rows.from, rows.from_span());
    if (there == Reach::none || here == Reach::none) return not_there;
    const char* refused = nullptr;
    rows.for_rows([&](std::byte* to, const std::byte* from, std::size_t bytes) {
      refused = there == Reach::by_cuda && here == Reach::by_cuda ? copy(to, from, bytes)
                                                                  : bounce(to, there, from, here, bytes);
      return refused == nullptr;
    });
    return refused;
  }
  static Reach reach_of(MappedMemory& symmetric, const std::byte* address, std::size_t bytes) {
    if (symmetric.holds(address, bytes)) return Reach::by_cuda;
    const gpu_memory::PointerInfo info = gpu_memory::describe(address);
    if (info.kind == gpu_memory::PointerKind::host) return Reach::pageable;
    if (info.kind != gpu_memory::PointerKind::device) return Reach::by_cuda;
    return bytes <= gpu_memory::bytes_behind(address, info.gpu) ? Reach::by_cuda : Reach::none;
  }
  const char* copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_) == cudaSuccess) return nullptr;
    static_cast<void>(cudaGetLastError());
    return "CUDA does not copy what its poster names";
  }
  /// Memory that CUDA has not pinned may not be mapped at all: the system copies it, and reports a failure. Returns
  /// when the bytes are in place: only copies of the host (World::copy) name such memory, and wait for each.
  const char* bounce(std::byte* to, Reach there, const std::byte* from, Reach here, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t piece = std::min(sizeof memory_->bounce, bytes - done);
      const char* refused = nullptr;
      if (here == Reach::by_cuda)
        refused = copy(memory_->bounce, from + done, piece);
      else if (!detail::copy_if_there(memory_->bounce, from + done, piece))
        refused = not_there;
      if (refused != nullptr) return refused;
      drain();
      if (there == Reach::by_cuda)
        refused = copy(to + done, memory_->bounce, piece);
      else if (!detail::copy_if_there(to + done, memory_->bounce, piece))
        refused = not_there;
      if (refused != nullptr) return refused;
      drain();
      done += piece;
    }
    return nullptr;
  }
  void drain() {
    is_busy_ = true;
    const std::uint64_t start = machine::clock_ns();
    while (!over()) {
      require(machine::clock_ns() - start < deadline_ns_, Status::deadline,
              "the stream of an engine has not ended its work by the deadline");
      std::this_thread::yield();
    }
  }
  void put_inline(const Command& command, std::byte* remote, std::size_t slot) override {
    if (std::byte* const place = place_of_cpu(remote, command.width)) {
      detail::put_inline(command, place);
      return;
    }
    const auto* const payload = reinterpret_cast<const std::byte*>(&command.local);
    if (is_written(remote, command.width)) {
      for (std::size_t at = 0; at < command.width; at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, payload + at, std::min(sizeof word, command.width - at));
        write(remote + at, word, std::min(sizeof word, command.width - at));
      }
      return;
    }
    begin_on_stream();
    std::memcpy(memory_->payloads[slot], payload, command.width);
    check(cudaMemcpyAsync(remote, memory_->payloads[slot], command.width, cudaMemcpyDefault, stream_),
          "cudaMemcpyAsync");
  }
  void change(const Command& command, std::byte* remote, std::size_t slot) override {
    const bool is_stored = has_shape<VerbShape::word>(command.verb);
    if (std::byte* const place = is_stored ? place_of_cpu(remote, command.width) : nullptr) {
      static_cast<void>(detail::change_word(command, place));
      return;
    }
    if (is_stored && is_written(remote, command.width)) return write(remote, command.local, command.width);
    if (!is_stored && cpu_changes_host_words_ && destinations_.holds_in_host_memory(remote, command.width))
      return change_by_cpu(command, remote, slot);
    begin_on_stream();
    change_word_kernel<<<1, 1, 0, stream_>>>(command, remote, memory_->results + slot);
    check(cudaGetLastError(), "a kernel that changes a word");
  }
  /// Changes a word of host memory after the ring's earlier commands, whose end on the stream it awaits.
  void change_by_cpu(const Command& command, std::byte* remote, std::size_t slot) {
    if (ring_is_busy_) {
      begin_on_stream();
      drain();
    }
    memory_->results[slot] = detail::change_word(command, stores_.place(remote, command.width, true));
  }

  const int gpu_;
  const std::uint64_t deadline_ns_;
  const bool cpu_changes_host_words_;
  WindowStores stores_;
  MappedMemory destinations_, sources_;
  cudaStream_t stream_ = nullptr;
  WorkerMemory* memory_ = nullptr;
  std::uint64_t* scratch_ = nullptr;
  std::array<CUstreamBatchMemOpParams, most_writes> params_{};  ///< stores that are not issued yet
  std::size_t writes_ = 0;
  std::array<Mirror, most_mirrors> mirrors_{};
  std::size_t rings_ = 0;                    ///< rings of this submission that have commands in flight
  std::uint64_t begun_ = 0, submitted_ = 0;  ///< submissions; those whose end the stream publishes
  /// For each of the last submissions: the published submission after which it is over.
  std::array<std::uint64_t, 2 * batches_under_way> ends_with_{};
  bool submission_is_busy_ = false;  ///< whether the stream has work of this submission
  std::uint32_t looks_ = 0;
  bool ring_is_busy_ = false;  ///< whether the stream may have work of the ring whose commands begin
  bool is_busy_ = false;       ///< whether the stream may have work of any ring
};

}  // namespace

std::unique_ptr<CommandWorker> make_gpu_worker(const EngineClient& client, const GpuWindows* windows) {
  return std::make_unique<GpuWorker>(client, windows);
}

#else

std::unique_ptr<CommandWorker> make_gpu_worker(const EngineClient&, const GpuWindows*) {
  throw Error(Status::unavailable, "this build has no CUDA");
}

#endif

}  // namespace beeline
