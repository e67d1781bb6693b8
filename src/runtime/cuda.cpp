// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda.hpp"

#include <fmt/format.h>

#include "beeline/core/error.hpp"

namespace beeline::cuda_api {

namespace {

template <class Function>
void find(const char* name, Function& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned version = 12000;  // signatures as of CUDA 12.0
  check(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found), name);
  if (found != cudaDriverEntryPointSuccess || address == nullptr)
    throw Error(Status::unavailable, fmt::format("the CUDA driver has no {}: Beeline needs driver 525 or newer", name));
  function = reinterpret_cast<Function>(address);
}

Driver find_all() {
  Driver driver{};
  find("cuMemAddressReserve", driver.mem_address_reserve);
  find("cuMemAddressFree", driver.mem_address_free);
  find("cuMemCreate", driver.mem_create);
  find("cuMemRelease", driver.mem_release);
  find("cuMemMap", driver.mem_map);
  find("cuMemUnmap", driver.mem_unmap);
  find("cuMemSetAccess", driver.mem_set_access);
  find("cuMemExportToShareableHandle", driver.mem_export);
  find("cuMemImportFromShareableHandle", driver.mem_import);
  find("cuMemGetAddressRange", driver.mem_address_range);
  find("cuMemGetAllocationGranularity", driver.mem_granularity);
  find("cuStreamWaitValue64", driver.stream_wait_value);
  find("cuStreamWriteValue64", driver.stream_write_value);
  find("cuGetErrorString", driver.error_string);
  return driver;
}

}  // namespace

void check(cudaError_t result, const char* call, std::source_location where) {
  if (result == cudaSuccess) return;
  throw Error(Status::internal, fmt::format("{}: {} ({})", call, cudaGetErrorString(result), cudaGetErrorName(result)),
              -1, where);
}

void check(CUresult result, const char* call, std::source_location where) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  driver().error_string(result, &text);
  throw Error(Status::internal,
              fmt::format("{}: {} ({})", call, text == nullptr ? "unknown error" : text, static_cast<int>(result)), -1,
              where);
}

const Driver& driver() {
  static const Driver table = find_all();
  return table;
}

}  // namespace beeline::cuda_api
