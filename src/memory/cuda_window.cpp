// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>

#include "beeline/core/error.hpp"
#include "beeline/runtime/gpu_place.hpp"
#include "memory/gpu_memory.hpp"
#include "memory/gpu_window.hpp"
#include "runtime/cuda.hpp"
#include "runtime/vulkan.hpp"

namespace beeline {

namespace {

using cuda_api::check;
using cuda_api::driver;

GpuUuid uuid_of(int gpu) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties");
  GpuUuid uuid{};
  static_assert(sizeof uuid == sizeof properties.uuid);
  std::memcpy(uuid.data(), &properties.uuid, sizeof uuid);
  return uuid;
}

/// Why CPUs must not store into a GPU's memory even if it can be mapped; empty if they may.
std::string reason_of_cuda(int gpu) {
#if defined(__x86_64__)
  int ordering = 0;
  check(cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, gpu), "cudaDeviceGetAttribute");
  if (ordering < cudaGPUDirectRDMAWritesOrderingOwner)
    return fmt::format("kernels of GPU {} may see stores of CPUs in another order than they were made in", gpu);
  return "";
#else
  return fmt::format("the order of stores of CPUs to GPU {} is known on x86-64 alone", gpu);
#endif
}

/// The GPU whose memory contains the allocation at an address, made by this process or another.
int gpu_of(const std::byte* address) {
  CUmemGenericAllocationHandle handle{};
  check(driver().mem_retain(&handle, const_cast<std::byte*>(address)), "cuMemRetainAllocationHandle");
  CUmemAllocationProp properties{};
  const CUresult known = driver().mem_properties(&properties, handle);
  driver().mem_release(handle);
  check(known, "cuMemGetAllocationPropertiesFromHandle");
  require(properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE, Status::unavailable, "the memory is not a GPU's");
  return properties.location.id;
}

class OpenWindow final : public gpu_memory::Window {
 public:
  OpenWindow(std::span<const std::byte> piece, int gpu)
      : Window(piece, gpu),
        mapping_(VulkanGpu::open(uuid_of(gpu))->map(gpu_memory::descriptor_of(piece.data()), piece.size())) {
    seen_ = mapping_->address();
  }

 private:
  const std::unique_ptr<VulkanGpu::Mapping> mapping_;
};

/// Makes no CUDA context on the GPU: for a peer's memory only Vulkan's driver makes a context.
std::shared_ptr<const gpu_memory::Window> make_window(std::span<const std::byte> piece) {
  const int gpu = gpu_of(piece.data());
  const std::string reason = reason_of_cuda(gpu);
  require(reason.empty(), Status::unavailable, reason);
  return std::make_shared<const OpenWindow>(piece, gpu);
}

}  // namespace

std::shared_ptr<const gpu_memory::Window> gpu_memory::open_window(std::span<const std::byte> piece) {
  static std::mutex mutex;
  static std::map<const std::byte*, std::weak_ptr<const Window>> open;
  const std::lock_guard lock(mutex);
  if (auto there = open[piece.data()].lock()) return there;
  try {
    auto made = make_window(piece);
    open[piece.data()] = made;
    return made;
  } catch (const Error& error) {
    throw Error(Status::unavailable, error.what());
  }
}

std::string no_cpu_stores_reason(int gpu) {
  try {
    const std::string reason = reason_of_cuda(gpu);
    return reason.empty() ? VulkanGpu::reason_against(uuid_of(gpu)) : reason;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace beeline
