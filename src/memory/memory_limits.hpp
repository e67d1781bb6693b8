// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How much host memory this process may use, and what sets the limit.

#include <cstddef>
#include <string>

namespace beeline {

struct MemoryLimit {
  std::size_t bytes;
  std::string name;  ///< as an error names it
};

/// The least of the machine's memory and the limits of the control groups that this process is in.
///   root  in front of /proc and /sys, for tests
[[nodiscard]] MemoryLimit host_memory_limit(const std::string& root = "");

/// Throws no_resource where files cannot grow to so many bytes (RLIMIT_FSIZE), which would end the process.
void check_file_size(std::size_t bytes);

}  // namespace beeline
