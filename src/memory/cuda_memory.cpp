// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "memory/gpu_memory.hpp"
#include "memory/kept_descriptors.hpp"
#include "runtime/cuda.hpp"

namespace beeline::gpu_memory {

namespace {

using cuda_api::BesideCaptures;
using cuda_api::check;
using cuda_api::driver;

CUdeviceptr device_pointer(std::byte* address) { return reinterpret_cast<CUdeviceptr>(address); }

void allow(std::byte* address, std::size_t bytes, const std::vector<int>& gpus) {
  std::vector<CUmemAccessDesc> access;
  for (const int gpu : gpus) {
    CUmemAccessDesc entry{};
    entry.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
    entry.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    access.push_back(entry);
  }
  check(driver().mem_set_access(device_pointer(address), bytes, access.data(), access.size()),
        "cuMemSetAccess (does every GPU of the world reach every other?)");
}

/// Maps the memory of a handle, and releases the handle: the memory lives until it is unmapped.
void map_handle(std::byte* address, std::size_t bytes, CUmemGenericAllocationHandle handle,
                const std::vector<int>& gpus) {
  const CUresult mapped = driver().mem_map(device_pointer(address), bytes, 0, handle, 0);
  driver().mem_release(handle);
  check(mapped, "cuMemMap");
  allow(address, bytes, gpus);
}

/// Kept because CUDA gives no descriptor of memory that a process has imported.
KeptDescriptors& imported() {
  static KeptDescriptors descriptors;
  return descriptors;
}

}  // namespace

bool reserve(std::byte* address, std::size_t bytes) {
  CUdeviceptr given = 0;
  if (driver().mem_address_reserve(&given, bytes, 0, device_pointer(address), 0) != CUDA_SUCCESS) return false;
  if (given == device_pointer(address)) return true;
  driver().mem_address_free(given, bytes);
  return false;
}

std::byte* reserve_anywhere(std::size_t bytes) {
  CUdeviceptr given = 0;
  const CUresult result = driver().mem_address_reserve(&given, bytes, 0, 0, 0);
  require(result == CUDA_SUCCESS, Status::no_resource,
          fmt::format("no {} bytes of addresses for memory of GPUs: {}", bytes, cuda_api::text_of(result)));
  return reinterpret_cast<std::byte*>(given);
}

void release(std::byte* address, std::size_t bytes) { driver().mem_address_free(device_pointer(address), bytes); }

FileDescriptor create(std::byte* address, std::size_t bytes, int gpu, const std::vector<int>& gpus) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle{};
  const CUresult made = driver().mem_create(&handle, bytes, &properties, 0);
  if (made == CUDA_ERROR_OUT_OF_MEMORY) {
    const cuda_api::CurrentGpu current(gpu);
    std::size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    throw Error(Status::no_resource, fmt::format("GPU {} has no room for {} bytes, {} of its {} are free: lower "
                                                 "BEELINE_HEAP_BYTES, or give it fewer ranks",
                                                 gpu, bytes, free_bytes, total_bytes));
  }
  check(made, "cuMemCreate");
  int descriptor = -1;
  check(driver().mem_export(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cuMemExportToShareableHandle");
  FileDescriptor shared(descriptor);
  map_handle(address, bytes, handle, gpus);
  return shared;
}

void map(std::byte* address, std::size_t bytes, int descriptor, const std::vector<int>& gpus) {
  CUmemGenericAllocationHandle handle{};
  auto* os_handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
  check(driver().mem_import(&handle, os_handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        "cuMemImportFromShareableHandle");
  map_handle(address, bytes, handle, gpus);
}

void keep_descriptor(const std::byte* address, int descriptor) { imported().keep(address, descriptor); }

void unmap(std::byte* address, std::size_t bytes) {
  imported().forget(address);
  driver().mem_unmap(device_pointer(address), bytes);
}

FileDescriptor descriptor_of(const std::byte* address) {
  if (FileDescriptor kept = imported().copy_of(address)) return kept;
  int descriptor = -1;
  CUmemGenericAllocationHandle handle{};
  check(driver().mem_retain(&handle, const_cast<std::byte*>(address)), "cuMemRetainAllocationHandle");
  const CUresult exported = driver().mem_export(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  driver().mem_release(handle);
  check(exported, "cuMemExportToShareableHandle");
  return FileDescriptor(descriptor);
}

void register_host(std::byte* address, std::size_t bytes) {
  const BesideCaptures beside;
  check(cudaHostRegister(address, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
        fmt::format("pinning {} bytes of host memory, as GPU worlds do with all of it (BEELINE_PINNED_HEAP_BYTES, on "
                    "host ranks BEELINE_HEAP_BYTES)",
                    bytes)
            .c_str());
  void* seen_by_gpu = nullptr;
  check(cudaHostGetDevicePointer(&seen_by_gpu, address, 0), "cudaHostGetDevicePointer");
  if (seen_by_gpu != address)
    throw Error(Status::unavailable,
                "GPUs see registered host memory at another address than the CPU does on this machine");
}

void unregister_host(std::byte* address) {
  const BesideCaptures beside;
  cudaHostUnregister(address);
}

}  // namespace beeline::gpu_memory
