// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A stream that also reaches memory beyond its device's reach: through bounce buffers, or by an engine.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "beeline/transport/stream.hpp"
#include "transport/route.hpp"

namespace beeline {

/// How a stream reaches the addresses that it is given.
struct StreamRoutes {
  /// Returns the route to an address for copies, fills and signals. Throws unreachable if there is none.
  std::function<Route(const void*)> route_to;
  /// Whether every device copies to and from an address of this rank: then one copy suffices.
  std::function<bool(const void*)> all_devices_reach;
  /// Makes a stream of the device that a route names.
  std::function<std::unique_ptr<Stream>(int device)> make_stream;
  std::size_t chunk_bytes = 0;  ///< length of each buffer in host memory
  bool pinned = false;          ///< whether GPUs use the buffers
  /// Whether the engine does not access an address that only copies of the wrapped stream reach: GPU memory of this
  /// node, for a host rank.
  std::function<bool(const void*)> is_beyond_engine;
  /// Host memory for what the engine and copies of the wrapped stream pass on to each other.
  std::function<std::span<std::byte>(const Stream& own)> carry_buffer;
  // The engine's operations, in the order of `own`, the wrapped stream.
  std::function<void(Stream& own, void* destination, const void* source, std::size_t bytes)> copy_by_engine;
  std::function<void(Stream& own, void* destination, unsigned char value, std::size_t bytes)> fill_by_engine;
  std::function<void(Stream& own, std::uint64_t* signal, std::uint64_t value)> signal_by_engine;
};

/// Wraps `own`. Copies, fills and signals of memory that its device does not reach are made by streams of other
/// devices, in this stream's order. No CPU thread waits. Copies between two devices use four bounce buffers, so that
/// the copies out and in overlap. Source: seed 001, virtual peer DMA (double copy through small pinned buffers).
[[nodiscard]] std::unique_ptr<Stream> make_bounce_stream(std::unique_ptr<Stream> own, StreamRoutes routes);

}  // namespace beeline
