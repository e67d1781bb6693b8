// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Streams of the host device.

#include <memory>

#include "beeline/transport/stream.hpp"

namespace beeline {

class GpuReach;

/// As `make_stream`; `reach`, if any, outlives the stream and serves what it does with GPU memory.
[[nodiscard]] std::unique_ptr<Stream> make_host_stream(const Device& device, const Context& context,
                                                       std::shared_ptr<GridState> grid_state,
                                                       const GpuReach* reach = nullptr);
/// Throws unavailable in builds without CUDA.
[[nodiscard]] std::unique_ptr<Stream> make_gpu_stream(const Device& device, const Context& context,
                                                      std::shared_ptr<GridState> grid_state);

}  // namespace beeline
