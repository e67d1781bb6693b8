// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Streams of the host device.

#include <memory>

#include "beeline/transport/stream.hpp"

namespace beeline {

class GpuReach;

/// As `make_stream`. `reach`, if any, must outlive the stream; it carries out the operations that use GPU memory.
[[nodiscard]] std::unique_ptr<Stream> make_host_stream(const Device& device, const Context& context,
                                                       std::shared_ptr<GridState> grid_state,
                                                       const GpuReach* reach = nullptr);
/// Throws unavailable in builds without CUDA.
[[nodiscard]] std::unique_ptr<Stream> make_gpu_stream(const Device& device, const Context& context,
                                                      std::shared_ptr<GridState> grid_state,
                                                      StreamPriority priority = StreamPriority::normal);
/// A stream over `native`, a cudaStream_t of the same GPU (nullptr: the legacy default stream), which still belongs to
/// its owner. Throws invalid_argument if `native` belongs to another GPU, unavailable in builds without CUDA.
[[nodiscard]] std::unique_ptr<Stream> adopt_gpu_stream(const Device& device, std::shared_ptr<GridState> grid_state,
                                                       void* native);

}  // namespace beeline
