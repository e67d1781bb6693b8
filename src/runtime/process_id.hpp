// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A number that tells processes apart.

#include <cstdint>

namespace beeline::detail {

/// Equal for ranks of one process, different otherwise, also across PID namespaces and after fork.
[[nodiscard]] std::uint64_t process_id();

}  // namespace beeline::detail
