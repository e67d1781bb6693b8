// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>

#include "beeline/core/error.hpp"
#include "memory/gpu_pointers.hpp"
#include "runtime/cuda.hpp"

namespace beeline::gpu_memory {

namespace {

using cuda_api::check;
using cuda_api::CurrentGpu;
using cuda_api::driver;

Allocation allocation_of(const void* pointer, int gpu) {
  const CurrentGpu current(gpu);
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  check(driver().mem_address_range(&start, &bytes, reinterpret_cast<CUdeviceptr>(pointer)), "cuMemGetAddressRange");
  return {.start = start, .bytes = bytes};
}

/// The text of an error. Clears the error, which the runtime API would otherwise return to the next query.
std::string taken_error(cudaError_t result) {
  static_cast<void>(cudaGetLastError());
  return cudaGetErrorString(result);
}

}  // namespace

PointerInfo describe(const void* pointer) {
  cudaPointerAttributes attributes{};
  if (const cudaError_t result = cudaPointerGetAttributes(&attributes, pointer); result != cudaSuccess) {
    static_cast<void>(taken_error(result));
    return {};
  }
  switch (attributes.type) {
    case cudaMemoryTypeDevice:
      return {PointerKind::device, attributes.device};
    case cudaMemoryTypeManaged:
      return {PointerKind::managed, attributes.device};
    case cudaMemoryTypeHost:
      return {PointerKind::pinned, -1};
    default:
      return {};
  }
}

std::uint64_t allocation_id(const void* pointer, int gpu) {
  unsigned long long id = 0;
  const auto ask = [&] {
    return driver().pointer_attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, reinterpret_cast<CUdeviceptr>(pointer));
  };
  if (ask() == CUDA_SUCCESS) return id;  // process-wide addresses; only a thread without a context gets no answer
  const CurrentGpu current(gpu);
  return ask() == CUDA_SUCCESS ? id : 0;
}

Allocation allocation_at(const void* pointer, int gpu) {
  if (const PointerInfo info = describe(pointer); info.kind != PointerKind::device || info.gpu != gpu) return {};
  Allocation found = allocation_of(pointer, gpu);
  found.id = allocation_id(pointer, gpu);
  return found;
}

std::size_t bytes_behind(const void* pointer, int gpu) {
  const Allocation allocation = allocation_of(pointer, gpu);
  return allocation.bytes - (reinterpret_cast<std::uintptr_t>(pointer) - allocation.start);
}

IpcHandle export_ipc(const void* pointer, int gpu) {
  const CurrentGpu current(gpu);
  const Allocation allocation = allocation_of(pointer, gpu);
  cudaIpcMemHandle_t handle{};
  if (const cudaError_t result = cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(allocation.start));
      result != cudaSuccess)
    throw Error(Status::invalid_argument,
                fmt::format("CUDA does not share the memory at {} with other processes ({}): only what cudaMalloc gave",
                            pointer, taken_error(result)));
  IpcHandle exported{};
  static_assert(sizeof handle == sizeof exported.bytes);
  std::memcpy(exported.bytes.data(), &handle, sizeof handle);
  exported.offset = reinterpret_cast<std::uintptr_t>(pointer) - allocation.start;
  return exported;
}

std::byte* open_ipc(const IpcHandle& handle, int gpu) {
  const CurrentGpu current(gpu);
  cudaIpcMemHandle_t imported{};
  std::memcpy(&imported, handle.bytes.data(), sizeof imported);
  void* start = nullptr;
  if (const cudaError_t result = cudaIpcOpenMemHandle(&start, imported, cudaIpcMemLazyEnablePeerAccess);
      result != cudaSuccess)
    throw Error(Status::unreachable, fmt::format("cudaIpcOpenMemHandle: {}", taken_error(result)));
  return static_cast<std::byte*>(start);
}

void close_ipc(std::byte* start, int gpu) {
  const CurrentGpu current(gpu);
  if (const cudaError_t result = cudaIpcCloseMemHandle(start); result != cudaSuccess)
    static_cast<void>(taken_error(result));
}

bool enable_peer(int from, int to) {
  if (from == to) return true;
  const CurrentGpu current(from);
  const cudaError_t result = cudaDeviceEnablePeerAccess(to, 0);
  if (result == cudaSuccess) return true;
  static_cast<void>(taken_error(result));
  return result == cudaErrorPeerAccessAlreadyEnabled;
}

}  // namespace beeline::gpu_memory
