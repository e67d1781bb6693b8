// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>

#include "beeline/core/error.hpp"
#include "beeline/runtime/gpu_place.hpp"
#include "memory/gpu_pointers.hpp"
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

/// Why stores of CPUs are of no use though they can be mapped; empty: they are.
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

FileDescriptor descriptor_of(std::span<const std::byte> piece) {
  CUmemGenericAllocationHandle handle{};
  check(driver().mem_retain(&handle, const_cast<std::byte*>(piece.data())), "cuMemRetainAllocationHandle");
  int descriptor = -1;
  const CUresult exported = driver().mem_export(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  driver().mem_release(handle);
  check(exported, "cuMemExportToShareableHandle");
  return FileDescriptor(descriptor);
}

class OpenWindow final : public gpu_memory::Window {
 public:
  OpenWindow(std::span<const std::byte> piece, int gpu) : Window(piece, gpu) {
    mapping_ = VulkanGpu::open(uuid_of(gpu))->map(descriptor_of(piece), piece.size());
    seen_ = mapping_->address();
  }

 private:
  std::unique_ptr<VulkanGpu::Mapping> mapping_;
};

std::shared_ptr<const gpu_memory::Window> make_window(std::span<const std::byte> piece) {
  const gpu_memory::PointerInfo info = gpu_memory::describe(piece.data());
  require(info.kind == gpu_memory::PointerKind::device, Status::unavailable, "the memory is not a GPU's");
  const gpu_memory::Allocation whole = gpu_memory::allocation_at(piece.data(), info.gpu);
  require(whole.start == reinterpret_cast<std::uintptr_t>(piece.data()) && whole.bytes == piece.size(),
          Status::unavailable, "the memory is not one allocation");
  const std::string reason = reason_of_cuda(info.gpu);
  require(reason.empty(), Status::unavailable, reason);
  return std::make_shared<const OpenWindow>(piece, info.gpu);
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
