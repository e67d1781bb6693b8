// SPDX-License-Identifier: Apache-2.0
// A driver with the soname of NVIDIA's. Its one GPU has the memory to which file descriptors refer. It reads structures
// by the offsets that Vulkan's specification gives them on 64-bit systems.
#include "tests/support/fake_vulkan.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace beeline_test {

namespace {

FakeVulkan fake;

template <class T>
T field(const void* structure, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(structure) + offset, sizeof value);
  return value;
}
template <class T>
void set_field(void* structure, std::size_t offset, T value) {
  std::memcpy(static_cast<std::byte*>(structure) + offset, &value, sizeof value);
}

constexpr int failed = -3;
int result_of(VulkanFailure failure) { return fake.failure == failure ? failed : 0; }

struct Memory {
  int descriptor;
  std::size_t bytes;
  void* address;
};

using Handle = void*;

int create_instance(const void*, const void*, Handle* made) {
  if (const int result = result_of(VulkanFailure::instance)) return result;
  ++fake.instances;
  *made = &fake;
  return 0;
}
void destroy_instance(Handle, const void*) { --fake.instances; }
int physical_devices(Handle, std::uint32_t* count, Handle* devices) {
  *count = 1;
  if (devices != nullptr) *devices = &fake.uuid;
  return 0;
}
void properties_of(Handle, void* properties) {
  auto* const ids = field<std::byte*>(properties, 8);
  std::memcpy(ids + 16, fake.uuid.data(), fake.uuid.size());
}
void memory_of(Handle, void* properties) {
  constexpr std::uint32_t flags[] = {0, 1, 6, 14, 7};
  set_field<std::uint32_t>(properties, 0, 5);
  for (std::size_t i = 0; i < 5; ++i)
    set_field<std::uint32_t>(properties, 4 + 8 * i, fake.failure == VulkanFailure::visible_memory ? 0 : flags[i]);
}
int create_device(Handle, const void* info, const void*, Handle* made) {
  if (const int result = result_of(VulkanFailure::device)) return result;
  const bool is_right = field<std::uint32_t>(info, 0) == 3 && field<std::uint32_t>(info, 20) == 1 &&
                        field<std::uint32_t>(info, 48) == 1 &&
                        std::string_view(*field<const char* const*>(info, 56)) == "VK_KHR_external_memory_fd";
  if (!is_right) return failed;
  ++fake.devices;
  *made = &fake.devices;
  return 0;
}
void destroy_device(Handle, const void*) { --fake.devices; }
int allocate(Handle, const void* info, const void*, std::uint64_t* made) {
  if (const int result = result_of(VulkanFailure::allocation)) return result;
  const void* const import = field<const void*>(info, 8);
  const bool is_right = field<std::uint32_t>(info, 0) == 5 && field<std::uint32_t>(info, 24) == 4 &&
                        field<std::uint32_t>(import, 0) == 1000074000 && field<std::uint32_t>(import, 16) == 1;
  if (!is_right) return failed;
  ++fake.memories;
  auto* const memory = new Memory{field<int>(import, 20), field<std::uint64_t>(info, 16), nullptr};
  *made = reinterpret_cast<std::uintptr_t>(memory);
  return 0;
}
int map(Handle, std::uint64_t which, std::uint64_t offset, std::uint64_t bytes, std::uint32_t, void** address) {
  if (const int result = result_of(VulkanFailure::mapping)) return result;
  auto* const memory = reinterpret_cast<Memory*>(static_cast<std::uintptr_t>(which));
  void* const there =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->descriptor, static_cast<off_t>(offset));
  if (there == MAP_FAILED) return failed;
  *address = memory->address = there;
  return 0;
}
void release(Handle, std::uint64_t which, const void*) {
  auto* const memory = reinterpret_cast<Memory*>(static_cast<std::uintptr_t>(which));
  if (memory->address != nullptr) ::munmap(memory->address, memory->bytes);
  ::close(memory->descriptor);
  delete memory;
  --fake.memories;
}

using Function = void (*)();
Function device_function(Handle, const char* name);

struct Entry {
  std::string_view name;
  Function function;
};
template <class Signature>
Function as_function(Signature* function) {
  return reinterpret_cast<Function>(function);
}

Function find(std::string_view name) {
  const Entry entries[] = {{"vkCreateInstance", as_function(create_instance)},
                           {"vkDestroyInstance", as_function(destroy_instance)},
                           {"vkEnumeratePhysicalDevices", as_function(physical_devices)},
                           {"vkGetPhysicalDeviceProperties2", as_function(properties_of)},
                           {"vkGetPhysicalDeviceMemoryProperties", as_function(memory_of)},
                           {"vkCreateDevice", as_function(create_device)},
                           {"vkGetDeviceProcAddr", as_function(device_function)},
                           {"vkDestroyDevice", as_function(destroy_device)},
                           {"vkAllocateMemory", as_function(allocate)},
                           {"vkMapMemory", as_function(map)},
                           {"vkFreeMemory", as_function(release)}};
  for (const Entry& entry : entries)
    if (entry.name == name && name != fake.missing) return entry.function;
  return nullptr;
}
Function device_function(Handle, const char* name) { return find(name); }

}  // namespace

FakeVulkan& fake_vulkan() { return fake; }

}  // namespace beeline_test

extern "C" int vk_icdNegotiateLoaderICDInterfaceVersion(std::uint32_t* version) {
  return *version >= 2 ? 0 : beeline_test::failed;
}
extern "C" void (*vk_icdGetInstanceProcAddr(void*, const char* name))() { return beeline_test::find(name); }
