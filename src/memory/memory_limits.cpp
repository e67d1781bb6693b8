// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <charconv>
#include <filesystem>

#include "beeline/core/error.hpp"
#include "beeline/runtime/device.hpp"
#include "core/text_file.hpp"

namespace beeline {

namespace {

/// Reads the number in a file. Returns false for `max`, or if there is no such file.
bool read_bytes(const std::filesystem::path& file, std::size_t& bytes) {
  const std::string text = read_text(file.string());
  return std::from_chars(text.data(), text.data() + text.size(), bytes).ec == std::errc{};
}

}  // namespace

MemoryLimit host_memory_limit(const std::string& root) {
  MemoryLimit least{host_device().memory_bytes, "this machine's memory"};
  for (const std::filesystem::path& folder : control_groups("memory", root))
    for (const char* const name : {"memory.max", "memory.limit_in_bytes"}) {  // of cgroup version 2, version 1
      const std::filesystem::path file = folder / name;
      if (std::size_t bytes = 0; read_bytes(file, bytes) && bytes < least.bytes)
        least = {bytes, fmt::format("the memory limit of this process's control group ({})", file.string())};
    }
  return least;
}

void check_file_size(std::size_t bytes, const char* remedy) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return;
  throw Error(Status::no_resource,
              fmt::format("{} bytes of shared memory are more than the limit on the size of files, {} bytes: lift it "
                          "(ulimit -f), or {}",
                          bytes, static_cast<std::size_t>(limit.rlim_cur), remedy));
}

}  // namespace beeline
