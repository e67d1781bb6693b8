// SPDX-License-Identifier: Apache-2.0
// How GPU memory is mapped for CPU threads, with a driver that replaces NVIDIA's.
#include "runtime/vulkan.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "beeline/core/error.hpp"
#include "tests/support/fake_vulkan.hpp"

namespace beeline {

using beeline_test::fake_vulkan;
using beeline_test::VulkanFailure;

namespace {

constexpr std::size_t bytes = 1 << 16;

class Vulkan : public ::testing::Test {
 protected:
  Vulkan() { fake_vulkan() = {}; }
  ~Vulkan() override {
    EXPECT_EQ(0, fake_vulkan().instances);
    EXPECT_EQ(0, fake_vulkan().devices);
    EXPECT_EQ(0, fake_vulkan().memories);
  }
  /// Memory of the fake GPU, as a descriptor.
  static FileDescriptor make_memory() {
    FileDescriptor memory(::memfd_create("gpu", 0));
    EXPECT_EQ(0, ::ftruncate(memory.get(), bytes));
    return memory;
  }
  static FileDescriptor copy_of(const FileDescriptor& memory) { return FileDescriptor(::dup(memory.get())); }
  /// The error of mapping such memory; empty if it succeeds.
  static std::string refusal() {
    const FileDescriptor memory = make_memory();
    try {
      static_cast<void>(VulkanGpu::open(fake_vulkan().uuid)->map(copy_of(memory), bytes));
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(Status::unavailable, error.code());
      return error.what();
    }
  }
};

TEST_F(Vulkan, MapsWhatADescriptorNames) {
  const FileDescriptor memory = make_memory();
  const auto mapping = VulkanGpu::open(fake_vulkan().uuid)->map(copy_of(memory), bytes);
  std::memcpy(mapping->address() + bytes - 8, "a value", 8);
  char found[8];
  ASSERT_EQ(8, ::pread(memory.get(), found, sizeof found, bytes - 8));
  EXPECT_STREQ("a value", found);
}

TEST_F(Vulkan, IsOneForAllUsers) {
  const auto one = VulkanGpu::open(fake_vulkan().uuid), other = VulkanGpu::open(fake_vulkan().uuid);
  EXPECT_EQ(one, other);
  EXPECT_EQ(1, fake_vulkan().instances);
  EXPECT_EQ(1, fake_vulkan().devices);
}

TEST_F(Vulkan, TellsWhetherItWouldMap) {
  EXPECT_EQ("", VulkanGpu::reason_against(fake_vulkan().uuid));
  EXPECT_NE(std::string::npos, VulkanGpu::reason_against({9}).find("shows 1 GPUs, and not this one"));
  fake_vulkan().failure = VulkanFailure::visible_memory;
  EXPECT_NE(std::string::npos, VulkanGpu::reason_against(fake_vulkan().uuid).find("no memory on this GPU"));
}

/// Each library that may contain a driver is tried, and the error names each one that has none.
TEST_F(Vulkan, IsLookedForEverywhere) {
  fake_vulkan().failure = VulkanFailure::instance;
  const std::string text = refusal();
  for (const char* const part : {"libGLX_nvidia.so.0: ", "vkCreateInstance", "libEGL_nvidia.so.0 has no vk_icdGet",
                                 "libvulkan.so.1 has no vkGetInstanceProcAddr"})
    EXPECT_NE(std::string::npos, text.find(part)) << part << " in " << text;
}

struct Fault {
  VulkanFailure failure;
  const char *missing, *text;
};
class Faults : public Vulkan, public ::testing::WithParamInterface<Fault> {};
TEST_P(Faults, AreNamed) {
  fake_vulkan().failure = GetParam().failure;
  fake_vulkan().missing = GetParam().missing;
  EXPECT_NE(std::string::npos, refusal().find(GetParam().text)) << refusal();
}
INSTANTIATE_TEST_SUITE_P(All, Faults,
                         ::testing::Values(Fault{VulkanFailure::instance, "", "vkCreateInstance"},
                                           Fault{VulkanFailure::visible_memory, "", "no memory on this GPU"},
                                           Fault{VulkanFailure::device, "", "vkCreateDevice"},
                                           Fault{VulkanFailure::allocation, "", "vkAllocateMemory"},
                                           Fault{VulkanFailure::mapping, "", "vkMapMemory"},
                                           Fault{VulkanFailure::none, "vkMapMemory", "has no vkMapMemory"},
                                           Fault{VulkanFailure::none, "vkCreateDevice", "has no vkCreateDevice"}));

}  // namespace

}  // namespace beeline
