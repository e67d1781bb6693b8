// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The method whose kernels are launched by a kernel. It has its own library and its own program, because it alone
/// needs relocatable device code.

#include "method.hpp"

namespace himeno {

/// Needs a GPU for each rank; its constructor throws unavailable on host ranks.
[[nodiscard]] MethodInfo device_launched();

}  // namespace himeno
