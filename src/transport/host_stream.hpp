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
                                                      std::shared_ptr<GridState> grid_state,
                                                      StreamPriority priority = StreamPriority::normal);
/// A stream over `native`, a cudaStream_t of that GPU (nullptr: the legacy default stream), which stays its owner's.
/// Throws invalid_argument when it belongs to another GPU, unavailable in builds without CUDA.
[[nodiscard]] std::unique_ptr<Stream> adopt_gpu_stream(const Device& device, std::shared_ptr<GridState> grid_state,
                                                       void* native);

}  // namespace beeline
