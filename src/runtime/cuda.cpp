// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda.hpp"

#include <fmt/format.h>

#include "beeline/core/error.hpp"

namespace beeline::cuda_api {

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
