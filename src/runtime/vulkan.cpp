// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "beeline/core/error.hpp"

namespace beeline {

namespace {

// The part of Vulkan 1.2 that is used, with the layouts of its specification: a build needs no Vulkan headers.

using Handle = struct Opaque*;   ///< instance, physical device, device
using MemoryId = std::uint64_t;  ///< VkDeviceMemory
using Result = std::int32_t;     ///< 0: success
using Function = void (*)();
using FunctionOf = Function (*)(Handle owner, const char* name);

constexpr std::uint32_t version_1_2 = 2u << 12 | 1u << 22;
constexpr std::uint32_t opaque_descriptor = 1;
constexpr std::uint32_t device_local = 1, host_visible = 2, host_coherent = 4;

struct ApplicationInfo {
  std::uint32_t type = 0;
  const void* next = nullptr;
  const char* application = "beeline";
  std::uint32_t application_version = 0;
  const char* engine = nullptr;
  std::uint32_t engine_version = 0, api_version = version_1_2;
};
struct InstanceInfo {
  std::uint32_t type = 1;
  const void* next = nullptr;
  std::uint32_t flags = 0;
  const ApplicationInfo* application = nullptr;
  std::uint32_t layers = 0;
  const char* const* layer_names = nullptr;
  std::uint32_t extensions = 0;
  const char* const* extension_names = nullptr;
};
struct DeviceIds {
  std::uint32_t type = 1000071004;
  void* next = nullptr;
  GpuUuid device{};
  unsigned char driver[16], local[8];
  std::uint32_t node_mask, local_is_valid;
};
struct DeviceProperties {
  std::uint32_t type = 1000059001;
  void* next = nullptr;
  alignas(8) std::byte properties[824];
};
struct MemoryProperties {
  struct Type {
    std::uint32_t flags, heap;
  };
  struct Heap {
    std::uint64_t bytes;
    std::uint32_t flags;
  };
  std::uint32_t types;
  Type type[32];
  std::uint32_t heaps;
  Heap heap[16];
};
struct QueueInfo {
  std::uint32_t type = 2;
  const void* next = nullptr;
  std::uint32_t flags = 0, family = 0, count = 1;
  const float* priorities = nullptr;
};
struct DeviceInfo {
  std::uint32_t type = 3;
  const void* next = nullptr;
  std::uint32_t flags = 0, queues = 1;
  const QueueInfo* queue = nullptr;
  std::uint32_t layers = 0;
  const char* const* layer_names = nullptr;
  std::uint32_t extensions = 0;
  const char* const* extension_names = nullptr;
  const void* features = nullptr;
};
struct MemoryInfo {
  std::uint32_t type = 5;
  const void* next = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t memory_type = 0;
};
struct ImportInfo {
  std::uint32_t type = 1000074000;
  const void* next = nullptr;
  std::uint32_t handle_type = opaque_descriptor;
  int descriptor = -1;
};
static_assert(sizeof(ApplicationInfo) == 48 && sizeof(InstanceInfo) == 64 && sizeof(DeviceIds) == 64);
static_assert(sizeof(DeviceProperties) == 840 && sizeof(MemoryProperties) == 520 && sizeof(QueueInfo) == 40);
static_assert(sizeof(DeviceInfo) == 72 && sizeof(MemoryInfo) == 32 && sizeof(ImportInfo) == 24);

[[noreturn]] void unavailable(const std::string& reason) { throw Error(Status::unavailable, reason); }

void check(Result result, const char* call) {
  if (result != 0) unavailable(fmt::format("{} of NVIDIA's Vulkan driver returned {}", call, result));
}

/// A function found by name; converts to any function pointer type.
class Named {
 public:
  Named(FunctionOf function_of, Handle owner, const char* name) : function_(function_of(owner, name)) {
    if (function_ == nullptr) unavailable(fmt::format("NVIDIA's Vulkan driver has no {}", name));
  }
  template <class Signature>
  operator Signature*() const {  // NOLINT(google-explicit-constructor)
    return reinterpret_cast<Signature*>(function_);
  }

 private:
  Function function_;
};

/// A library, and its function that looks up functions.
struct Entry {
  const char *library, *function;
};
/// The driver itself. If libraries that it needs are missing (X11), Vulkan's loader finds another driver library.
constexpr Entry entries[] = {{"libGLX_nvidia.so.0", "vk_icdGetInstanceProcAddr"},
                             {"libEGL_nvidia.so.0", "vk_icdGetInstanceProcAddr"},
                             {"libvulkan.so.1", "vkGetInstanceProcAddr"}};

/// Opens a library for good, since such libraries cannot be closed safely. Returns nullptr, and the reason, if it is
/// missing.
FunctionOf open_entry(const Entry& entry, std::string& reason) {
  void* const library = ::dlopen(entry.library, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const text = ::dlerror();
    reason = text == nullptr ? entry.library : text;
    return nullptr;
  }
  using Negotiate = Result (*)(std::uint32_t*);
  const auto negotiate = reinterpret_cast<Negotiate>(::dlsym(library, "vk_icdNegotiateLoaderICDInterfaceVersion"));
  std::uint32_t version = 5;
  const auto found = reinterpret_cast<FunctionOf>(::dlsym(library, entry.function));
  if (found == nullptr || (negotiate != nullptr && negotiate(&version) != 0)) {
    reason = fmt::format("{} has no {}", entry.library, entry.function);
    return nullptr;
  }
  return found;
}

/// The driver's instance in this process.
class Instance {
 public:
  explicit Instance(FunctionOf function_of) : function_of_(function_of) {
    Result (*const create)(const InstanceInfo*, const void*, Handle*) = Named(function_of, nullptr, "vkCreateInstance");
    const ApplicationInfo application;
    InstanceInfo info;
    info.application = &application;
    check(create(&info, nullptr, &instance_), "vkCreateInstance");
    destroy_ = Named(function_of_, instance_, "vkDestroyInstance");
  }
  ~Instance() { destroy_(instance_, nullptr); }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// The instance that all users of the process share.
  [[nodiscard]] static std::shared_ptr<Instance> shared() {
    static std::mutex mutex;
    static std::weak_ptr<Instance> last;
    const std::lock_guard lock(mutex);
    if (auto there = last.lock()) return there;
    std::string reasons;
    for (const Entry& entry : entries) {
      std::string reason;
      if (const FunctionOf function_of = open_entry(entry, reason)) try {
          auto made = std::make_shared<Instance>(function_of);
          last = made;
          return made;
        } catch (const Error& error) {
          reason = fmt::format("{}: {}", entry.library, error.what());
        }
      reasons += (reasons.empty() ? "" : "; ") + reason;
    }
    unavailable("NVIDIA's Vulkan driver is not there: " + reasons);
  }

  [[nodiscard]] Named function(const char* name) const { return {function_of_, instance_, name}; }
  /// The GPU with this UUID.
  [[nodiscard]] Handle find(const GpuUuid& uuid) const {
    Result (*const enumerate)(Handle, std::uint32_t*, Handle*) = function("vkEnumeratePhysicalDevices");
    void (*const properties_of)(Handle, DeviceProperties*) = function("vkGetPhysicalDeviceProperties2");
    std::uint32_t count = 0;
    check(enumerate(instance_, &count, nullptr), "vkEnumeratePhysicalDevices");
    std::vector<Handle> gpus(count);
    check(enumerate(instance_, &count, gpus.data()), "vkEnumeratePhysicalDevices");
    for (const Handle gpu : gpus) {
      DeviceIds ids{};
      DeviceProperties properties{};
      properties.next = &ids;
      properties_of(gpu, &properties);
      if (ids.device == uuid) return gpu;
    }
    unavailable(fmt::format("NVIDIA's Vulkan driver shows {} GPUs, and not this one", count));
  }
  /// The type of GPU memory that is visible to the host, uncached.
  [[nodiscard]] std::uint32_t memory_type(Handle gpu) const {
    void (*const properties_of)(Handle, MemoryProperties*) = function("vkGetPhysicalDeviceMemoryProperties");
    MemoryProperties memory{};
    properties_of(gpu, &memory);
    constexpr std::uint32_t wanted = device_local | host_visible | host_coherent;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(memory.types, std::size(memory.type)); ++i)
      if ((memory.type[i].flags & wanted) == wanted) return i;
    unavailable("NVIDIA's Vulkan driver has no memory on this GPU that the host sees");
  }

 private:
  const FunctionOf function_of_;
  Handle instance_ = nullptr;
  void (*destroy_)(Handle, const void*) = nullptr;
};

class OpenGpu final : public VulkanGpu, public std::enable_shared_from_this<OpenGpu> {
 public:
  OpenGpu(std::shared_ptr<Instance> instance, const GpuUuid& uuid) : instance_(std::move(instance)) {
    const Handle gpu = instance_->find(uuid);
    type_ = instance_->memory_type(gpu);
    Result (*const create)(Handle, const DeviceInfo*, const void*, Handle*) = instance_->function("vkCreateDevice");
    const FunctionOf function_of = reinterpret_cast<FunctionOf>(
        static_cast<Function (*)(Handle, const char*)>(instance_->function("vkGetDeviceProcAddr")));
    const float priority = 0;
    QueueInfo queue;
    queue.priorities = &priority;
    const char* const extension = "VK_KHR_external_memory_fd";
    DeviceInfo info;
    info.queue = &queue;
    info.extensions = 1;
    info.extension_names = &extension;
    check(create(gpu, &info, nullptr, &device_), "vkCreateDevice");
    destroy_ = Named(function_of, device_, "vkDestroyDevice");
    try {
      allocate_ = Named(function_of, device_, "vkAllocateMemory");
      free_ = Named(function_of, device_, "vkFreeMemory");
      map_ = Named(function_of, device_, "vkMapMemory");
    } catch (...) {
      destroy_(device_, nullptr);
      throw;
    }
  }
  ~OpenGpu() override { destroy_(device_, nullptr); }

  std::unique_ptr<Mapping> map(FileDescriptor descriptor, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    ImportInfo import;
    import.descriptor = descriptor.get();
    MemoryInfo info;
    info.next = &import, info.bytes = bytes, info.memory_type = type_;
    MemoryId memory = 0;
    check(allocate_(device_, &info, nullptr, &memory), "vkAllocateMemory");
    static_cast<void>(descriptor.release());  // Vulkan owns it now
    void* address = nullptr;
    if (const Result result = map_(device_, memory, 0, bytes, 0, &address); result != 0) {
      free_(device_, memory, nullptr);
      check(result, "vkMapMemory");
    }
    return std::make_unique<OpenMapping>(shared_from_this(), memory, static_cast<std::byte*>(address));
  }

 private:
  class OpenMapping final : public Mapping {
   public:
    OpenMapping(std::shared_ptr<OpenGpu> gpu, MemoryId memory, std::byte* address)
        : gpu_(std::move(gpu)), memory_(memory), address_(address) {}
    ~OpenMapping() override {
      const std::lock_guard lock(gpu_->mutex_);
      gpu_->free_(gpu_->device_, memory_, nullptr);  // also unmaps the memory
    }
    OpenMapping(const OpenMapping&) = delete;
    OpenMapping& operator=(const OpenMapping&) = delete;
    std::byte* address() const override { return address_; }

   private:
    const std::shared_ptr<OpenGpu> gpu_;
    const MemoryId memory_;
    std::byte* const address_;
  };

  const std::shared_ptr<Instance> instance_;
  std::mutex mutex_;
  std::uint32_t type_ = 0;
  Handle device_ = nullptr;
  void (*destroy_)(Handle, const void*) = nullptr;
  Result (*allocate_)(Handle, const MemoryInfo*, const void*, MemoryId*) = nullptr;
  void (*free_)(Handle, MemoryId, const void*) = nullptr;
  Result (*map_)(Handle, MemoryId, std::uint64_t offset, std::uint64_t bytes, std::uint32_t flags, void**) = nullptr;
};

}  // namespace

std::shared_ptr<VulkanGpu> VulkanGpu::open(const GpuUuid& uuid) {
  static std::mutex mutex;
  static std::map<GpuUuid, std::weak_ptr<OpenGpu>> open;
  const std::lock_guard lock(mutex);
  if (auto there = open[uuid].lock()) return there;
  auto made = std::make_shared<OpenGpu>(Instance::shared(), uuid);
  open[uuid] = made;
  return made;
}

std::string VulkanGpu::reason_against(const GpuUuid& uuid) {
  try {
    const std::shared_ptr<Instance> instance = Instance::shared();
    static_cast<void>(instance->memory_type(instance->find(uuid)));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace beeline
