// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// CUDA in this library's own sources: error checks, and driver functions that are looked up at run time.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <optional>
#include <source_location>

namespace beeline::cuda_api {

/// Throws `internal` with the call's name and CUDA's message unless `result` is success.
void check(cudaError_t result, const char* call, std::source_location where = std::source_location::current());
void check(CUresult result, const char* call, std::source_location where = std::source_location::current());
/// CUDA's message.
[[nodiscard]] const char* text_of(CUresult result);

/// For a scope, lets this thread make calls that CUDA forbids while any thread of the process captures a graph (mostly
/// queries and allocations), so that neither the call nor the capture fails. Work put on a captured stream is still
/// captured. Makes no context; the runtime API's call may give a thread that has none that of GPU 0, which takes
/// seconds in a process that does not use this GPU. Does nothing where there is no driver, since nothing is captured
/// there.
class BesideCaptures {
 public:
  BesideCaptures() noexcept : is_changed_(exchange()) {}
  ~BesideCaptures() {
    if (is_changed_) static_cast<void>(exchange());
  }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;
  /// Whether the driver has changed this thread's mode.
  [[nodiscard]] bool is_changed() const { return is_changed_; }

 private:
  bool exchange() noexcept;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  const bool is_changed_;
};

/// Makes a GPU current for a scope: any thread may drive any device, also during captures. In the scope the thread has
/// the GPU's context, without which driver functions fail. A thread without a context has none afterwards:
/// cudaSetDevice would make a context on the GPU that it restores.
class CurrentGpu {
 public:
  explicit CurrentGpu(int index);
  ~CurrentGpu();
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;

 private:
  const BesideCaptures beside_;
  const int index_;
  int previous_ = 0;
  bool had_context_ = true;
  bool is_other_ = false;                              ///< whether this object has changed the thread's GPU or context
  std::optional<BesideCaptures> beside_with_context_;  ///< if the driver changes no mode without a context
};

/// Whether this thread's latest `use_gpu` named this GPU and its context is still current.
[[nodiscard]] bool is_in_use(int gpu);

/// As `CurrentGpu`, for calls that captures permit; takes less time in a thread that uses the GPU already.
class UsedGpu {
 public:
  explicit UsedGpu(int index) {
    if (!is_in_use(index)) changed_.emplace(index);
  }

 private:
  std::optional<CurrentGpu> changed_;
};

/// A driver function found by name; converts to any function pointer type. Throws unavailable if the driver lacks it.
class DriverFunction {
 public:
  explicit DriverFunction(const char* name);
  template <class Signature>
  operator Signature*() const {  // NOLINT(google-explicit-constructor)
    return reinterpret_cast<Signature*>(address_);
  }

 private:
  void* address_ = nullptr;
};

/// Driver functions that the runtime API does not offer, or that take less time than those of the runtime API.
struct Driver {
  decltype(&cuMemAddressReserve) mem_address_reserve = DriverFunction("cuMemAddressReserve");
  decltype(&cuMemAddressFree) mem_address_free = DriverFunction("cuMemAddressFree");
  decltype(&cuMemCreate) mem_create = DriverFunction("cuMemCreate");
  decltype(&cuMemRelease) mem_release = DriverFunction("cuMemRelease");
  decltype(&cuMemMap) mem_map = DriverFunction("cuMemMap");
  decltype(&cuMemUnmap) mem_unmap = DriverFunction("cuMemUnmap");
  decltype(&cuMemSetAccess) mem_set_access = DriverFunction("cuMemSetAccess");
  decltype(&cuMemExportToShareableHandle) mem_export = DriverFunction("cuMemExportToShareableHandle");
  decltype(&cuMemImportFromShareableHandle) mem_import = DriverFunction("cuMemImportFromShareableHandle");
  decltype(&cuMemRetainAllocationHandle) mem_retain = DriverFunction("cuMemRetainAllocationHandle");
  decltype(&cuMemGetAllocationPropertiesFromHandle) mem_properties =
      DriverFunction("cuMemGetAllocationPropertiesFromHandle");
  decltype(&cuMemGetAddressRange) mem_address_range = DriverFunction("cuMemGetAddressRange");
  decltype(&cuPointerGetAttribute) pointer_attribute = DriverFunction("cuPointerGetAttribute");
  decltype(&cuPointerGetAttributes) pointer_attributes = DriverFunction("cuPointerGetAttributes");
  decltype(&cuStreamWaitValue64) stream_wait_value = DriverFunction("cuStreamWaitValue64");
  decltype(&cuStreamWriteValue64) stream_write_value = DriverFunction("cuStreamWriteValue64");
  decltype(&cuStreamBatchMemOp) stream_batch = DriverFunction("cuStreamBatchMemOp");
  decltype(&cuGetErrorString) error_string = DriverFunction("cuGetErrorString");
  decltype(&cuCtxGetCurrent) current_context = DriverFunction("cuCtxGetCurrent");
  decltype(&cuCtxSetCurrent) set_context = DriverFunction("cuCtxSetCurrent");
  decltype(&cuDeviceGet) device = DriverFunction("cuDeviceGet");
  decltype(&cuDevicePrimaryCtxRetain) primary_context = DriverFunction("cuDevicePrimaryCtxRetain");
  decltype(&cuThreadExchangeStreamCaptureMode) exchange_capture_mode =
      DriverFunction("cuThreadExchangeStreamCaptureMode");
  decltype(&cuStreamIsCapturing) is_capturing = DriverFunction("cuStreamIsCapturing");
  decltype(&cuEventRecord) event_record = DriverFunction("cuEventRecord");
  decltype(&cuStreamWaitEvent) stream_wait_event = DriverFunction("cuStreamWaitEvent");
  decltype(&cuLaunchKernelEx) launch_kernel = DriverFunction("cuLaunchKernelEx");
};

/// The driver functions. Throws unavailable if the driver lacks one of them.
[[nodiscard]] const Driver& driver();

}  // namespace beeline::cuda_api
