// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// CUDA's own waits of a CPU thread for a GPU.

#include "beeline/transport/stream.hpp"

namespace beeline::bench {

enum class BareWait { device, stream, event, blocking_event };

/// Waits for the work of a GPU's stream: by cudaDeviceSynchronize, cudaStreamSynchronize, or cudaEventSynchronize for
/// an event after the work, made without and with cudaEventBlockingSync. Throws internal, unavailable on a host rank.
void bare_synchronize(Stream& stream, BareWait wait);

}  // namespace beeline::bench
