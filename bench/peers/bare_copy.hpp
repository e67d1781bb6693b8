// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bare copy by the device's own means.

#include <cstddef>

#include "beeline/transport/stream.hpp"

namespace beeline::bench {

/// On a GPU `cudaMemcpyAsync` on the stream; on a host rank `memcpy` by the calling thread, over on return.
/// Throws internal with CUDA's own message.
void bare_copy(Stream& stream, void* to, const void* from, std::size_t bytes);

}  // namespace beeline::bench
