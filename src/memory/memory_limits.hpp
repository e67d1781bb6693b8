// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How much host memory this process may use, and which limit applies.

#include <cstddef>
#include <string>

namespace beeline {

struct MemoryLimit {
  std::size_t bytes;
  std::string name;  ///< the limit's name in errors
};

/// The minimum of the machine's memory and the limits of this process's control groups.
///   root  prefix of /proc and /sys, for tests
[[nodiscard]] MemoryLimit host_memory_limit(const std::string& root = "");

/// Throws no_resource if files cannot grow to `bytes` (RLIMIT_FSIZE): exceeding the limit would end the process.
///   remedy  what the user can do besides lifting the limit, for the error
void check_file_size(std::size_t bytes, const char* remedy = "lower BEELINE_HEAP_BYTES or BEELINE_PINNED_HEAP_BYTES");

}  // namespace beeline
