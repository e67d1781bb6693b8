// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A persisting window of a GPU's second-level cache.

#include <cstddef>

#include "beeline/transport/stream.hpp"

namespace beeline::bench {

/// Memory in [first, first + bytes) that kernels of the stream access stays in the cache when other memory is accessed;
/// 0 bytes end that. Throws unavailable on a device without such windows, internal with CUDA's own message.
void set_l2_window(Stream& stream, const void* first, std::size_t bytes);

}  // namespace beeline::bench
