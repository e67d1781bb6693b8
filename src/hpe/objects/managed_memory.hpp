// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Managed memory of CUDA. Two implementations: cuda_managed_memory.cpp, and no_cuda_managed_memory.cpp without CUDA.

#include <cstddef>

namespace beeline::hpe::detail {

/// Memory that the driver moves between the GPU and the host; its content is undefined. `gpu::free` frees it. Throws
/// no_resource; unavailable if the GPU does not let CPU threads use managed memory while kernels run.
[[nodiscard]] std::byte* allocate_managed(int gpu, std::size_t bytes);

}  // namespace beeline::hpe::detail
