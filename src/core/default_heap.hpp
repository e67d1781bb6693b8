// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The symmetric heap of a rank where BEELINE_HEAP_BYTES says nothing.

#include <cstddef>

namespace beeline {

inline constexpr std::size_t default_gpu_heap_bytes = std::size_t{1} << 30;     ///< all ranks have GPUs
inline constexpr std::size_t default_host_heap_bytes = std::size_t{256} << 20;  ///< some are host ranks

}  // namespace beeline
