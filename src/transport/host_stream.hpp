// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Streams of the host device.

#include <memory>

#include "beeline/transport/stream.hpp"

namespace beeline {

[[nodiscard]] std::unique_ptr<Stream> make_host_stream(const Device& device, const Context& context,
                                                       std::shared_ptr<GridState> grid_state);
/// Throws unavailable in builds without CUDA.
[[nodiscard]] std::unique_ptr<Stream> make_gpu_stream(const Device& device, const Context& context,
                                                      std::shared_ptr<GridState> grid_state);

}  // namespace beeline
