// SPDX-License-Identifier: Apache-2.0
#include "peers/bare_copy.hpp"

#include <cstring>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"

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

#else

void bare_copy(Stream&, void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace beeline::bench
