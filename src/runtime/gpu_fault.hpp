// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether a GPU still works for this process.

#include <string>

namespace beeline::detail {

/// The fault that made GPU `index` unusable for this process, such as an invalid access of a kernel; empty while it
/// works.
[[nodiscard]] std::string gpu_fault(int index);

}  // namespace beeline::detail
