// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A kernel of a few microseconds.

#include <cstddef>
#include <cstdint>

#include "beeline/hpe/stream.hpp"

namespace beeline::bench::hpe {

/// Enqueues a kernel that adds 1 to each of `count` words.
void launch_small(beeline::hpe::Stream& stream, std::uint32_t* words, std::size_t count);

/// The same by a bare call of CUDA, on the stream of a GPU.
void bare_launch_small(const beeline::hpe::Stream& stream, std::uint32_t* words, std::size_t count);

}  // namespace beeline::bench::hpe
