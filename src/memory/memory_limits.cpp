// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <charconv>
#include <filesystem>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/runtime/device.hpp"
#include "core/text_file.hpp"

namespace beeline {

namespace {

/// A control group's path in a hierarchy, and where its limit is.
struct Group {
  std::string mount, path, file;
};

/// From lines as `4:memory:/path` (version 1) and `0::/path` (version 2).
std::vector<Group> groups_of_process(const std::string& root) {
  std::vector<Group> groups;
  const std::string list = read_text(root + "/proc/self/cgroup");
  for (const std::string_view line : lines_of(list)) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty()) groups.push_back({root + "/sys/fs/cgroup", path, "memory.max"});
    if (controllers == "memory") groups.push_back({root + "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"});
  }
  return groups;
}

/// The number that a file holds; nothing for `max`, or where there is no such file.
bool read_bytes(const std::filesystem::path& file, std::size_t& bytes) {
  const std::string text = read_text(file.string());
  return std::from_chars(text.data(), text.data() + text.size(), bytes).ec == std::errc{};
}

}  // namespace

MemoryLimit host_memory_limit(const std::string& root) {
  MemoryLimit least{host_device().memory_bytes, "this machine's memory"};
  for (const Group& group : groups_of_process(root)) {
    // Groups above have limits too. Inside a container the path may be that of the host, and its root the group itself.
    for (std::filesystem::path path = group.path;; path = path.parent_path()) {
      const std::filesystem::path file = group.mount / path.relative_path() / group.file;
      if (std::size_t bytes = 0; read_bytes(file, bytes) && bytes < least.bytes)
        least = {bytes, fmt::format("the memory limit of this process's control group ({})", file.string())};
      if (!path.has_relative_path()) break;
    }
  }
  return least;
}

void check_file_size(std::size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return;
  throw Error(Status::no_resource,
              fmt::format("{} bytes of shared memory are more than the limit on the size of files, {} bytes: lift it "
                          "(ulimit -f), or lower BEELINE_HEAP_BYTES or BEELINE_PINNED_HEAP_BYTES",
                          bytes, static_cast<std::size_t>(limit.rlim_cur)));
}

}  // namespace beeline
