// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda.hpp"

#include <fmt/format.h>

#include <exception>
#include <map>
#include <mutex>

#include "beeline/core/error.hpp"

namespace beeline::cuda_api {

namespace {

/// The context that the runtime API uses on a GPU. It is kept as long as the process.
CUcontext primary_context(int gpu) {
  static std::mutex mutex;
  static std::map<int, CUcontext> known;
  const std::lock_guard lock(mutex);
  CUcontext& context = known[gpu];
  if (context != nullptr) return context;
  CUdevice device{};
  check(driver().device(&device, gpu), "cuDeviceGet");
  check(driver().primary_context(&context, device), "cuDevicePrimaryCtxRetain");
  return context;
}

}  // namespace

bool BesideCaptures::exchange() noexcept {
  try {
    return driver().exchange_capture_mode(&mode_) == CUDA_SUCCESS;
  } catch (const std::exception&) {
    return false;
  }
}

CurrentGpu::CurrentGpu(int index) : index_(index) {
  check(cudaGetDevice(&previous_), "cudaGetDevice");
  CUcontext context = nullptr;  // the driver's functions need one, which the runtime's would make
  check(driver().current_context(&context), "cuCtxGetCurrent");
  had_context_ = context != nullptr;
  is_other_ = previous_ != index_ || !had_context_;
  if (!is_other_) return;
  if (had_context_) {
    check(cudaSetDevice(index_), "cudaSetDevice");
    return;
  }
  check(driver().set_context(primary_context(index_)), "cuCtxSetCurrent");
  if (!beside_.is_changed()) beside_with_context_.emplace();
}

CurrentGpu::~CurrentGpu() {
  if (!is_other_) return;
  beside_with_context_.reset();
  if (had_context_)
    static_cast<void>(cudaSetDevice(previous_));
  else
    static_cast<void>(driver().set_context(nullptr));
}

DriverFunction::DriverFunction(const char* name) {
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned version = 12000;  // signatures as of CUDA 12.0
  check(cudaGetDriverEntryPointByVersion(name, &address_, version, cudaEnableDefault, &found), name);
  if (found != cudaDriverEntryPointSuccess || address_ == nullptr)
    throw Error(Status::unavailable, fmt::format("the CUDA driver has no {}: Beeline needs driver 525 or newer", name));
}

void check(cudaError_t result, const char* call, std::source_location where) {
  if (result == cudaSuccess) return;
  throw Error(Status::internal, fmt::format("{}: {} ({})", call, cudaGetErrorString(result), cudaGetErrorName(result)),
              -1, where);
}

void check(CUresult result, const char* call, std::source_location where) {
  if (result == CUDA_SUCCESS) return;
  throw Error(Status::internal, fmt::format("{}: {} ({})", call, text_of(result), static_cast<int>(result)), -1, where);
}

const char* text_of(CUresult result) {
  const char* text = nullptr;
  driver().error_string(result, &text);
  return text == nullptr ? "unknown error" : text;
}

const Driver& driver() {
  static const Driver table;
  return table;
}

}  // namespace beeline::cuda_api
