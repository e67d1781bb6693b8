// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A persisting window of a GPU's second-level cache.

#include <cstddef>

#include "beeline/transport/stream.hpp"

namespace beeline::bench {

/// What kernels of the stream touch in [first, first + bytes) stays in the cache when other memory comes; 0 bytes: no
/// longer. Throws unavailable on a device that has no such window, internal with CUDA's own message.
void set_l2_window(Stream& stream, const void* first, std::size_t bytes);

}  // namespace beeline::bench
