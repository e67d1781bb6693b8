// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Stream operations on memory that only the rank's engine reaches (docs/network.md, Streams). A kernel of one block,
/// in the order of the stream, posts commands to the engine and waits for their completion. This also works in a graph,
/// and has the deadline and the errors of kernels.

#include <cstddef>
#include <cstdint>

#include "beeline/transport/stream.hpp"
#include "runtime/residency.hpp"

namespace beeline {

class World;

/// A copy whose source, destination or both only the engine reaches. It is complete before later work of the stream. A
/// copy with both goes through a buffer of the stream. Throws unavailable for such a copy while the stream is captured,
/// no_resource if there is no memory for the buffer.
void carry_copy(World& world, Stream& stream, void* destination, const void* source, std::size_t bytes);

/// Sets every byte of memory that only the engine reaches, before later work of the stream. Throws unavailable while
/// the stream is captured, no_resource.
void carry_fill(World& world, Stream& stream, void* destination, unsigned char value, std::size_t bytes);

/// Sets a signal in memory that only the engine reaches, after the stream's earlier copies to that rank. Throws
/// unavailable while the stream is captured.
void carry_signal(World& world, Stream& stream, std::uint64_t* signal, std::uint64_t value);

/// A chunk in a buffer of host memory, to be put to a rank that only the engine reaches. Each buffer has a word in host
/// memory, used by one stream: the number of posted commands, up to and including its chunk.
struct CarriedChunk {
  std::byte* to;  ///< in the slot of `peer`
  const std::byte* buffer;
  std::size_t bytes;
  std::uint64_t* posted;         ///< word of this buffer
  const std::uint64_t* awaited;  ///< word of the buffer that is to be free
  std::uint32_t peer;
};
/// Puts a chunk, then waits until the engine no longer reads the buffer of `awaited`.
void carry_chunk(World& world, Stream& stream, const CarriedChunk& chunk);
/// The room on the device that the kernels of carried copies on `streams` streams take.
[[nodiscard]] ReservedRoom room_of_carried_work(World& world, unsigned streams);
/// Holds later work of the stream until all puts of the rank's streams and threads to `peer` are in place.
void carry_quiet(World& world, Stream& stream, std::uint32_t peer);

}  // namespace beeline
