// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>

#include "beeline/core/error.hpp"
#include "beeline/runtime/gpu_place.hpp"
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

/// An allocation of the driver, of this process or another.
class Allocation {
 public:
  explicit Allocation(std::span<const std::byte> piece) {
    check(driver().mem_retain(&handle_, const_cast<std::byte*>(piece.data())), "cuMemRetainAllocationHandle");
  }
  ~Allocation() { driver().mem_release(handle_); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  /// The GPU that it lies on.
  [[nodiscard]] int gpu() const {
    CUmemAllocationProp properties{};
    check(driver().mem_properties(&properties, handle_), "cuMemGetAllocationPropertiesFromHandle");
    require(properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE, Status::unavailable, "the memory is not a GPU's");
    return properties.location.id;
  }
  [[nodiscard]] FileDescriptor descriptor() const {
    int descriptor = -1;
    check(driver().mem_export(&descriptor, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          "cuMemExportToShareableHandle");
    return FileDescriptor(descriptor);
  }

 private:
  CUmemGenericAllocationHandle handle_{};
};

class OpenWindow final : public gpu_memory::Window {
 public:
  OpenWindow(std::span<const std::byte> piece, const Allocation& allocation, int gpu)
      : Window(piece, gpu), mapping_(VulkanGpu::open(uuid_of(gpu))->map(allocation.descriptor(), piece.size())) {
    seen_ = mapping_->address();
  }

 private:
  const std::unique_ptr<VulkanGpu::Mapping> mapping_;
};

/// Makes no context on the GPU: of a peer's memory only Vulkan's driver has one.
std::shared_ptr<const gpu_memory::Window> make_window(std::span<const std::byte> piece) {
  const Allocation allocation(piece);
  const int gpu = allocation.gpu();
  const std::string reason = reason_of_cuda(gpu);
  require(reason.empty(), Status::unavailable, reason);
  return std::make_shared<const OpenWindow>(piece, allocation, gpu);
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
