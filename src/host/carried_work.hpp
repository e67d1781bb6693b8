// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What streams do with memory that only the rank's engine reaches (docs/network.md, Streams). A kernel of one block,
/// in the order of the stream, posts commands to the engine and waits for their end; so also in a graph, and with the
/// deadline and the errors of kernels.

#include <cstddef>
#include <cstdint>

#include "beeline/transport/stream.hpp"

namespace beeline {

class World;

/// A copy with an end, or both, that only the engine reaches. Later work of the stream finds it in place.
/// Throws unavailable for a copy with two such ends while the stream is captured: it goes through a buffer of the
/// stream's; no_resource where there is none.
void carry_copy(World& world, Stream& stream, void* destination, const void* source, std::size_t bytes);

/// Sets every byte of memory that only the engine reaches. Later work of the stream finds it in place.
/// Throws unavailable while the stream is captured, no_resource.
void carry_fill(World& world, Stream& stream, void* destination, unsigned char value, std::size_t bytes);

/// Sets a signal there, behind what the stream has carried to that rank. Throws unavailable while the stream is
/// captured.
void carry_signal(World& world, Stream& stream, std::uint64_t* signal, std::uint64_t value);

}  // namespace beeline
