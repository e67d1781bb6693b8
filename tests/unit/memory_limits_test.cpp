// SPDX-License-Identifier: Apache-2.0
// Which limits on host memory and threads apply, and which is the lowest, from files in the kernel's format.
#include "memory/memory_limits.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "beeline/runtime/device.hpp"
#include "core/thread.hpp"

namespace beeline {

namespace {

class MemoryLimits : public ::testing::Test {
 protected:
  MemoryLimits() {
    std::string name = (std::filesystem::temp_directory_path() / "beeline-limits-").string() + std::string(6, 'X');
    root_ = ::mkdtemp(name.data());
  }
  ~MemoryLimits() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void expect_limit(std::size_t bytes, const std::string& words) const {
    const MemoryLimit limit = host_memory_limit(root_);
    EXPECT_EQ(bytes, limit.bytes);
    EXPECT_NE(std::string::npos, limit.name.find(words)) << limit.name;
  }

  std::string root_;
};

TEST_F(MemoryLimits, WithoutGroupsTheMachineIs) { expect_limit(host_device().memory_bytes, "this machine's memory"); }

TEST_F(MemoryLimits, GroupsOfVersionTwo) {
  write("/proc/self/cgroup", "0::/user/job");
  write("/sys/fs/cgroup/user/job/memory.max", "max");
  expect_limit(host_device().memory_bytes, "this machine's memory");
  write("/sys/fs/cgroup/user/job/memory.max", "8000000");
  expect_limit(8'000'000, "/user/job/memory.max");
  write("/sys/fs/cgroup/user/memory.max", "7000000");
  expect_limit(7'000'000, "/user/memory.max");
}

TEST_F(MemoryLimits, GroupsOfVersionOne) {
  write("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/17\n0::/");
  write("/sys/fs/cgroup/memory/docker/17/memory.limit_in_bytes", "9223372036854771712");
  expect_limit(host_device().memory_bytes, "this machine's memory");
  write("/sys/fs/cgroup/memory/docker/17/memory.limit_in_bytes", "6000000");
  expect_limit(6'000'000, "/memory/docker/17/memory.limit_in_bytes");
}

TEST_F(MemoryLimits, ThoseOfThreadsAreNamed) {
  const std::string none = detail::thread_limits(root_);
  EXPECT_EQ(std::string::npos, none.find("control group")) << none;
  write("/proc/self/cgroup", "0::/user/job");
  write("/sys/fs/cgroup/user/job/pids.max", "max");
  write("/sys/fs/cgroup/user/pids.max", "300");
  write("/sys/fs/cgroup/user/pids.current", "298");
  const std::string text = detail::thread_limits(root_);
  EXPECT_NE(std::string::npos, text.find("300 in its control group, of which 298 exist (" + root_)) << text;
  EXPECT_EQ(std::string::npos, text.find("job/pids.max")) << text;
}

/// In a container the path may be the host's, and the mount point the group itself.
TEST_F(MemoryLimits, TheRootOfAContainer) {
  write("/proc/self/cgroup", "4:memory:/docker/17");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000000");
  expect_limit(5'000'000, "/memory/memory.limit_in_bytes");
}

}  // namespace

}  // namespace beeline
