// SPDX-License-Identifier: Apache-2.0
#include "peers/bare_copy.hpp"

#include <array>
#include <cstring>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"
#include "peers/bare_words.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda.h>
#endif

namespace beeline::bench {

#if BEELINE_COMPILES_CUDA

namespace {

template <class Function>
Function driver_function(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned version = 12000;
  require(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found) == cudaSuccess &&
              address != nullptr,
          Status::internal, std::string("the driver has no ") + name);
  return reinterpret_cast<Function>(address);
}

}  // namespace

void bare_copy(Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (!stream.device().is_gpu()) {
    std::memcpy(to, from, bytes);
    return;
  }
  const cudaError_t error =
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream.native()));
  require(error == cudaSuccess, Status::internal, std::string("cudaMemcpyAsync: ") + cudaGetErrorString(error));
}

void bare_write(Stream& stream, std::uint64_t* to, std::uint64_t value) {
  if (!stream.device().is_gpu()) return BareWord(*to).store(value, std::memory_order_release);
  using WriteValue = int (*)(cudaStream_t stream, unsigned long long address, std::uint64_t value, unsigned flags);
  static const auto write = driver_function<WriteValue>("cuStreamWriteValue64");
  const auto place = reinterpret_cast<unsigned long long>(to);
  require(write(static_cast<cudaStream_t>(stream.native()), place, value, 0) == 0, Status::internal,
          "cuStreamWriteValue64 failed");
}

void bare_writes(Stream& stream, std::span<std::uint64_t* const> to, std::uint64_t value) {
  if (!stream.device().is_gpu()) {
    for (std::uint64_t* const word : to) BareWord(*word).store(value, std::memory_order_release);
    return;
  }
  using BatchMemOp =
      CUresult (*)(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags);
  static const auto issue = driver_function<BatchMemOp>("cuStreamBatchMemOp");
  std::array<CUstreamBatchMemOpParams, 256> operations{};
  require(to.size() <= operations.size(), Status::invalid_argument, "more words than one call stores");
  for (std::size_t i = 0; i < to.size(); ++i) {
    operations[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operations[i].writeValue.address = reinterpret_cast<CUdeviceptr>(to[i]);
    operations[i].writeValue.value64 = value;
  }
  require(issue(static_cast<CUstream>(stream.native()), static_cast<unsigned>(to.size()), operations.data(), 0) ==
              CUDA_SUCCESS,
          Status::internal, "cuStreamBatchMemOp failed");
}

#else

void bare_write(Stream&, std::uint64_t* to, std::uint64_t value) {
  BareWord(*to).store(value, std::memory_order_release);
}

void bare_writes(Stream&, std::span<std::uint64_t* const> to, std::uint64_t value) {
  for (std::uint64_t* const word : to) BareWord(*word).store(value, std::memory_order_release);
}

void bare_copy(Stream&, void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace beeline::bench
