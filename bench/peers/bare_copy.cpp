// SPDX-License-Identifier: Apache-2.0
#include "peers/bare_copy.hpp"

#include <cstring>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench {

#if BEELINE_COMPILES_CUDA

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
  if (!stream.device().is_gpu()) return BareWord(*to).store(value, cuda::memory_order_release);
  using WriteValue = int (*)(cudaStream_t stream, unsigned long long address, std::uint64_t value, unsigned flags);
  static const WriteValue write = [] {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult found{};
    constexpr unsigned version = 12000;
    require(cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &address, version, cudaEnableDefault, &found) ==
                    cudaSuccess &&
                address != nullptr,
            Status::internal, "the driver has no cuStreamWriteValue64");
    return reinterpret_cast<WriteValue>(address);
  }();
  const auto place = reinterpret_cast<unsigned long long>(to);
  require(write(static_cast<cudaStream_t>(stream.native()), place, value, 0) == 0, Status::internal,
          "cuStreamWriteValue64 failed");
}

#else

void bare_write(Stream&, std::uint64_t* to, std::uint64_t value) {
  BareWord(*to).store(value, cuda::memory_order_release);
}

void bare_copy(Stream&, void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace beeline::bench
