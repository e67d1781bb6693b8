// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A number that identifies a process.

#include <cstdint>

namespace beeline::detail {

/// Equal for ranks of one process, different for different processes, even across PID namespaces and after fork.
[[nodiscard]] std::uint64_t process_id();

}  // namespace beeline::detail
