// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "beeline/runtime/device.hpp"
#include "beeline/runtime/gpu_place.hpp"
#include "runtime/cuda.hpp"
#include "runtime/gpu_fault.hpp"
#include "runtime/grid_start.hpp"

namespace beeline {

namespace {

std::string format_uuid(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", dash ? "-" : "", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

/// The GPU that this thread's latest `use_gpu` named, and its context.
struct UsedContext {
  int gpu = -1;
  CUcontext context = nullptr;
};
constinit thread_local UsedContext used;
constinit thread_local CUresult latest_start = CUDA_SUCCESS;

CUcontext current_context() {
  CUcontext context = nullptr;
  cuda_api::check(cuda_api::driver().current_context(&context), "cuCtxGetCurrent");
  return context;
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  cuda_api::check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

bool shared_memory_fits(const KernelCode& kernel, int device) {
  return kernel.shared_bytes <= static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
}

cudaFuncAttributes attributes_of(const KernelCode& kernel) {
  cudaFuncAttributes attributes{};
  cuda_api::check(cudaFuncGetAttributes(&attributes, kernel.address), "loading a kernel");
  return attributes;
}

unsigned query_resident_blocks(const KernelCode& kernel, unsigned threads, int device) {
  const cuda_api::BesideCaptures beside;
  use_gpu(device);
  if (!shared_memory_fits(kernel, device)) return 0;
  int per_multiprocessor = 0;
  cuda_api::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel.address,
                                                                static_cast<int>(threads), kernel.shared_bytes),
                  "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const int multiprocessors = attribute(cudaDevAttrMultiProcessorCount, device);
  return static_cast<unsigned>(per_multiprocessor) * static_cast<unsigned>(multiprocessors);
}

int query_architecture(const KernelCode& kernel, int device) {
  const cuda_api::BesideCaptures beside;
  use_gpu(device);
  return attributes_of(kernel).ptxVersion;
}

CUfunction query_function(const KernelCode& kernel, int device) {
  const cuda_api::BesideCaptures beside;
  use_gpu(device);
  cudaFunction_t function = nullptr;
  cuda_api::check(cudaGetFuncBySymbol(&function, kernel.address), "loading a kernel");
  return function;
}

/// Caches answers of the driver, so that later launches need not query it.
template <class Answer, class... Key>
class Answers {
 public:
  template <class Ask>
  Answer get(const std::tuple<Key...>& key, Ask ask) {
    // A thread launches few kernels again and again: their answers need no lock.
    static thread_local std::array<std::pair<std::tuple<Key...>, Answer>, 16> recent{};
    auto& [recent_key, answer] = recent[reinterpret_cast<std::uintptr_t>(std::get<0>(key)) / 16 % recent.size()];
    if (recent_key == key) return answer;
    const std::lock_guard lock(mutex_);
    auto entry = known_.find(key);
    if (entry == known_.end()) entry = known_.emplace(key, ask()).first;
    recent_key = key, answer = entry->second;
    return answer;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<Key...>, Answer> known_;
};

std::string format_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// Why the CUDA runtime reports no GPU, and what to do about it.
std::string why_no_gpu(cudaError_t result) {
  if (result == cudaSuccess || result == cudaErrorNoDevice)
    return "the driver shows no GPU: CUDA_VISIBLE_DEVICES, or a container started without GPUs, may hide it";
  if (result != cudaErrorInsufficientDriver) return cudaGetErrorString(result);
  int driver = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  if (driver == 0) return "no CUDA driver is installed, or the container has none of the host's";
  return fmt::format("the driver serves CUDA {}, this build needs {}: install a newer driver, or build with that CUDA",
                     format_version(driver), format_version(CUDART_VERSION));
}

}  // namespace

std::vector<Device> visible_gpus(std::string* why_none) {
  // The driver reads both when it starts: load all kernels at once; a hardware queue for each waiting stream.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0) {
    if (why_none != nullptr) *why_none = why_no_gpu(result);
    return {};
  }
  std::vector<Device> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    cuda_api::check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    devices.push_back({DeviceKind::gpu, index, format_uuid(properties.uuid), properties.name,
                       properties.multiProcessorCount, properties.totalGlobalMem,
                       attribute(cudaDevAttrHostNativeAtomicSupported, index) != 0});
  }
  return devices;
}

bool peer_access(int from, int to) {
  if (from == to) return true;
  int can = 0;
  cuda_api::check(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer");
  return can != 0;
}

std::string pci_address(int gpu) {
  char address[32] = {};
  cuda_api::check(cudaDeviceGetPCIBusId(address, sizeof address, gpu), "cudaDeviceGetPCIBusId");
  std::string text(address);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char each) { return std::tolower(each); });
  return text;
}

void use_gpu(int index) {
  if (cuda_api::is_in_use(index)) return;
  int current = -1;
  cuda_api::check(cudaGetDevice(&current), "cudaGetDevice");
  // Inside a `CurrentGpu`, cudaSetDevice would also change the GPU that the thread has afterwards.
  if (current != index || current_context() == nullptr) cuda_api::check(cudaSetDevice(index), "cudaSetDevice");
  used = {index, current_context()};
}

bool cuda_api::is_in_use(int gpu) { return used.gpu == gpu && used.context == current_context(); }

CudaVersions cuda_versions() {
  CudaVersions versions;
  int number = 0;
  if (cudaDriverGetVersion(&number) == cudaSuccess && number > 0) versions.driver = format_version(number);
  if (cudaRuntimeGetVersion(&number) == cudaSuccess) versions.runtime = format_version(number);
  return versions;
}

bool built_with_cuda() { return true; }

int compute_capability(int index) {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor, index) + attribute(cudaDevAttrComputeCapabilityMinor, index);
}

/// Percentage of a multiprocessor's shared memory and first-level cache that is left as shared memory for kernels that
/// use none: as much as blocks of leased grids use. A multiprocessor changes this division only while it is empty, so a
/// waiting kernel that left none would lock out the workers that it waits for.
constexpr int left_for_leased_grids_percent = 28;  // 64 KB of 228

void load_kernel(const KernelCode& kernel, int device) {
  use_gpu(device);
  if (attributes_of(kernel).sharedSizeBytes == 0 && kernel.shared_bytes == 0)
    cuda_api::check(cudaFuncSetAttribute(kernel.address, cudaFuncAttributePreferredSharedMemoryCarveout,
                                         left_for_leased_grids_percent),
                    "dividing the cache for a kernel");
  // More than 48 KB must be requested. If the device has less, no block is resident, and launches report that.
  if (kernel.shared_bytes == 0 || !shared_memory_fits(kernel, device)) return;
  cuda_api::check(cudaFuncSetAttribute(kernel.address, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(kernel.shared_bytes)),
                  "asking for a kernel's shared memory");
}

unsigned gpu_resident_blocks(const KernelCode& kernel, unsigned threads, int device) {
  static Answers<unsigned, const void*, unsigned, int> answers;
  return answers.get({kernel.address, threads, device}, [&] { return query_resident_blocks(kernel, threads, device); });
}

int kernel_architecture(const KernelCode& kernel, int device) {
  static Answers<int, const void*, int> answers;
  return answers.get({kernel.address, device}, [&] { return query_architecture(kernel, device); });
}

std::string detail::gpu_fault(int index) {
  // After a fault every call returns its error. No work is queued on the legacy stream.
  cudaError_t state = cudaSetDevice(index);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (state == cudaSuccess) state = cudaStreamIsCapturing(cudaStreamLegacy, &capture);
  if (state == cudaErrorStreamCaptureImplicit) return "";  // a query would end the capture of a blocking stream
  if (state == cudaSuccess) state = cudaStreamQuery(cudaStreamLegacy);
  return state == cudaSuccess || state == cudaErrorNotReady ? "" : cudaGetErrorString(state);
}

void start_grid(const KernelCode& kernel, int gpu, const GridShape& shape, void** parameters) {
  static Answers<CUfunction, const void*, int> functions;
  const CUfunction function = functions.get({kernel.address, gpu}, [&] { return query_function(kernel, gpu); });
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  const CUlaunchConfig config{.gridDimX = shape.blocks,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = shape.threads,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .sharedMemBytes = static_cast<unsigned>(kernel.shared_bytes),
                              .hStream = static_cast<CUstream>(shape.stream),
                              .attrs = &early,
                              .numAttrs = shape.starts_early ? 1u : 0u};
  // The runtime API would look the function up again, and takes 0.3 us longer.
  latest_start = cuda_api::driver().launch_kernel(&config, function, parameters, nullptr);
}

std::string launch_error() { return latest_start == CUDA_SUCCESS ? "" : cuda_api::text_of(latest_start); }

}  // namespace beeline
