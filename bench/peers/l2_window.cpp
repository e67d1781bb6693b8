// SPDX-License-Identifier: Apache-2.0
#include "peers/l2_window.hpp"

#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda_runtime_api.h>
#endif

namespace beeline::bench {

#if BEELINE_COMPILES_CUDA

namespace {

void set_or_throw(cudaError_t error, const char* call) {
  require(error == cudaSuccess, Status::internal, std::string(call) + ": " + cudaGetErrorString(error));
}

/// Sets aside as much of the cache as the window needs.
void set_aside(int gpu, std::size_t bytes) {
  int most = 0;
  set_or_throw(cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, gpu), "cudaDeviceGetAttribute");
  require(bytes <= static_cast<std::size_t>(most), Status::unavailable,
          "the GPU's second-level cache keeps at most " + std::to_string(most) + " bytes");
  set_or_throw(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, bytes), "cudaDeviceSetLimit");
}

}  // namespace

void set_l2_window(Stream& stream, const void* first, std::size_t bytes) {
  use_gpu(stream.device().index);
  if (bytes != 0) set_aside(stream.device().index, bytes);
  cudaStreamAttrValue value{};
  value.accessPolicyWindow.base_ptr = const_cast<void*>(first);
  value.accessPolicyWindow.num_bytes = bytes;
  value.accessPolicyWindow.hitRatio = 1;
  value.accessPolicyWindow.hitProp = bytes != 0 ? cudaAccessPropertyPersisting : cudaAccessPropertyNormal;
  value.accessPolicyWindow.missProp = bytes != 0 ? cudaAccessPropertyStreaming : cudaAccessPropertyNormal;
  set_or_throw(
      cudaStreamSetAttribute(static_cast<cudaStream_t>(stream.native()), cudaStreamAttributeAccessPolicyWindow, &value),
      "cudaStreamSetAttribute");
  if (bytes == 0) set_or_throw(cudaCtxResetPersistingL2Cache(), "cudaCtxResetPersistingL2Cache");
}

#else

void set_l2_window(Stream&, const void*, std::size_t) { throw Error(Status::unavailable, "this build has no CUDA"); }

#endif

}  // namespace beeline::bench
