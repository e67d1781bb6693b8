// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A stream that also reaches memory which its device does not: in two steps, through host memory.

#include <cstddef>
#include <functional>
#include <memory>

#include "beeline/transport/stream.hpp"

namespace beeline {

/// What a routed stream needs to know.
struct Routes {
  /// The device that has to touch an address; -1: the stream's own. Throws unreachable where none can.
  std::function<int(const void*)> device_of;
  /// A stream of such a device.
  std::function<std::unique_ptr<Stream>(int device)> make_stream;
  std::size_t chunk_bytes = 0;  ///< of the buffers in host memory
  bool pinned = false;          ///< whether GPUs use the buffers
};

/// Wraps `own`: copies, fills and signals of memory that lies elsewhere are made by streams of the devices there, in
/// this stream's order. Nothing waits on the CPU. Copies between two devices go through four buffers, so that the
/// copies out and in overlap. Source: seed 001, virtual peer DMA (double copy through small pinned buffers).
[[nodiscard]] std::unique_ptr<Stream> make_routed_stream(std::unique_ptr<Stream> own, Routes routes);

}  // namespace beeline
