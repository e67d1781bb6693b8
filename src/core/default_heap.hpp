// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Default sizes of a rank's symmetric heap, if BEELINE_HEAP_BYTES is not set.

#include <cstddef>

namespace beeline {

inline constexpr std::size_t default_gpu_heap_bytes = std::size_t{1} << 30;     ///< if all ranks have GPUs
inline constexpr std::size_t default_host_heap_bytes = std::size_t{256} << 20;  ///< if some ranks are host ranks

}  // namespace beeline
