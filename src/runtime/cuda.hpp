// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// CUDA in this library's own sources: error checks, and the driver functions, found at run time.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <source_location>

namespace beeline::cuda_api {

/// Throws `internal` naming the call and CUDA's message unless `result` is success.
void check(cudaError_t result, const char* call, std::source_location where = std::source_location::current());
void check(CUresult result, const char* call, std::source_location where = std::source_location::current());

/// For a scope, lets this thread call what CUDA forbids while any thread of the process captures a graph (queries and
/// allocations, mostly), so that neither this call nor that capture fails. What is put on a captured stream is
/// captured.
class BesideCaptures {
 public:
  BesideCaptures() noexcept { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  void exchange() noexcept { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Makes a GPU current for a scope: any thread may drive any device, also beside captures.
class CurrentGpu {
 public:
  explicit CurrentGpu(int index) {
    check(cudaGetDevice(&previous_), "cudaGetDevice");
    if (previous_ != index) check(cudaSetDevice(index), "cudaSetDevice");
  }
  ~CurrentGpu() { static_cast<void>(cudaSetDevice(previous_)); }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;

 private:
  const BesideCaptures beside_;
  int previous_ = 0;
};

/// Driver functions that the runtime API does not offer.
struct Driver {
  CUresult (*mem_address_reserve)(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long);
  CUresult (*mem_address_free)(CUdeviceptr, size_t);
  CUresult (*mem_create)(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long);
  CUresult (*mem_release)(CUmemGenericAllocationHandle);
  CUresult (*mem_map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
  CUresult (*mem_unmap)(CUdeviceptr, size_t);
  CUresult (*mem_set_access)(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t);
  CUresult (*mem_export)(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long);
  CUresult (*mem_import)(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType);
  CUresult (*mem_address_range)(CUdeviceptr*, size_t*, CUdeviceptr);
  CUresult (*mem_granularity)(size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags);
  CUresult (*stream_wait_value)(CUstream, CUdeviceptr, cuuint64_t, unsigned int);
  CUresult (*stream_write_value)(CUstream, CUdeviceptr, cuuint64_t, unsigned int);
  CUresult (*error_string)(CUresult, const char**);
};

/// Throws unavailable when the driver lacks one of them.
[[nodiscard]] const Driver& driver();

}  // namespace beeline::cuda_api
