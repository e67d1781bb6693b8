// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "hpe/objects/managed_memory.hpp"
#include "runtime/cuda.hpp"

namespace beeline::hpe::detail {

using cuda_api::check;

std::byte* allocate_managed(int gpu, std::size_t bytes) {
  const cuda_api::CurrentGpu current(gpu);
  int is_concurrent = 0;
  check(cudaDeviceGetAttribute(&is_concurrent, cudaDevAttrConcurrentManagedAccess, gpu), "cudaDeviceGetAttribute");
  require(is_concurrent != 0, Status::unavailable,
          fmt::format("GPU {} does not let CPU threads use managed memory while its kernels run", gpu));
  void* start = nullptr;
  const cudaError_t result = cudaMallocManaged(&start, bytes);
  if (result == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw Error(Status::no_resource, fmt::format("no {} bytes of managed memory", bytes));
  }
  check(result, "cudaMallocManaged");
  return static_cast<std::byte*>(start);
}

}  // namespace beeline::hpe::detail
