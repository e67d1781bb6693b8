// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether a GPU still works for this process.

#include <string>

namespace beeline::detail {

/// What made GPU `index` useless to this process, as after a kernel's access to no memory; empty while it works.
[[nodiscard]] std::string gpu_fault(int index);

}  // namespace beeline::detail
