// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <exception>

#include "beeline/core/error.hpp"
#include "hpe/gpu.hpp"
#include "hpe/runtime.hpp"
#include "memory/gpu_pointers.hpp"
#include "runtime/cuda.hpp"
#include "runtime/gpu_fault.hpp"

namespace beeline::hpe::gpu {

namespace {

using cuda_api::BesideCaptures;
using cuda_api::check;
using cuda_api::CurrentGpu;
using cuda_api::driver;

/// The driver's attributes of a pointer.
struct Attributes {
  CUmemorytype type{};  ///< 0: the driver does not know the pointer
  unsigned is_managed = 0;
  unsigned is_one_allocation = 0;  ///< of cudaMalloc, not mapped piece by piece or part of a pool
  int gpu = -1;
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
};

/// One call of the driver. Returns false in a thread that has no context.
bool query(const void* pointer, Attributes& found) {
  std::array<CUpointer_attribute, 6> names = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                              CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                              CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                              CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                              CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                              CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  std::array<void*, 6> values = {&found.type, &found.is_managed, &found.is_one_allocation,
                                 &found.gpu,  &found.start,      &found.bytes};
  return driver().pointer_attributes(static_cast<unsigned>(names.size()), names.data(), values.data(),
                                     reinterpret_cast<CUdeviceptr>(pointer)) == CUDA_SUCCESS;
}

/// The GPU of the calling thread's current context, which is asked for only after the context has changed.
int gpu_of(CUcontext current) {
  struct Known {
    CUcontext context;
    int gpu;
  };
  static constinit thread_local Known known{nullptr, -1};
  if (known.context != current) {
    check(cudaGetDevice(&known.gpu), "cudaGetDevice");
    known.context = current;
  }
  return known.gpu;
}

Owner owner_from(const Attributes& found) {
  Owner owner;
  const bool is_host = found.type == CU_MEMORYTYPE_HOST;
  // The range of memory that is mapped piece by piece is that of one piece, and data may cross several.
  const bool has_known_end = is_host || found.is_managed != 0 || found.is_one_allocation != 0;
  if (has_known_end && found.bytes != 0)
    owner.start = reinterpret_cast<const std::byte*>(found.start), owner.bytes = found.bytes;
  owner.memory = found.is_managed != 0 ? Memory::managed : is_host ? Memory::pinned : Memory::device;
  if (found.gpu >= 0 && owner.memory != Memory::pinned) owner.device = detail::device_at(DeviceKind::gpu, found.gpu);
  return owner;
}

}  // namespace

std::optional<Owner> owner_of(const void* pointer) {
  if (!detail::Runtime::may_ask_gpus()) return std::nullopt;
  const BesideCaptures beside;
  Attributes found;
  if (!query(pointer, found)) {
    // The runtime gives a thread without a context that of its current device.
    static_cast<void>(gpu_memory::describe(pointer));
    found = {};
    if (!query(pointer, found)) return std::nullopt;
  }
  if (static_cast<int>(found.type) == 0) return std::nullopt;
  return owner_from(found);
}

void on(int gpu, const std::function<void()>& call) {
  const CurrentGpu current(gpu);
  call();
}

bool is_current(int gpu) {
  CUcontext context = nullptr;
  check(driver().current_context(&context), "cuCtxGetCurrent");
  return context != nullptr && gpu_of(context) == gpu;
}

void enqueue_copy(int gpu, void* stream, void* to, const void* from, std::size_t bytes) {
  // In the context of another GPU, CUDA refuses to copy an object's memory that only the stream's GPU has mapped.
  std::optional<CurrentGpu> current;
  if (!is_current(gpu)) current.emplace(gpu);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)), "cudaMemcpyAsync");
}

void enqueue_wait(int gpu, void* stream, std::uint64_t* word, std::uint64_t value) {
  const CurrentGpu current(gpu);
  check(driver().stream_wait_value(static_cast<cudaStream_t>(stream), reinterpret_cast<CUdeviceptr>(word), value,
                                   CU_STREAM_WAIT_VALUE_GEQ),
        "cuStreamWaitValue64");
}

std::byte* allocate(int gpu, std::size_t bytes) {
  const CurrentGpu current(gpu);
  void* start = nullptr;
  const cudaError_t result = cudaMalloc(&start, bytes);
  if (result == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw Error(Status::no_resource, fmt::format("no {} bytes of memory on GPU {}", bytes, gpu));
  }
  check(result, "cudaMalloc");
  return static_cast<std::byte*>(start);
}

void free(int gpu, std::byte* start) noexcept {
  try {
    const CurrentGpu current(gpu);
    static_cast<void>(cudaFree(start));
  } catch (const std::exception&) {
    // A GPU with a fault has freed its memory.
  }
}

std::string fault(int gpu) {
  try {
    const CurrentGpu current(gpu);
    return beeline::detail::gpu_fault(gpu);
  } catch (const Error& error) {  // after a fault every call returns its error
    return error.what();
  }
}

}  // namespace beeline::hpe::gpu
