// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bare copy, and the bare store of a word, by the device's own functions.

#include <cstddef>
#include <cstdint>
#include <span>

#include "beeline/transport/stream.hpp"

namespace beeline::bench {

/// On a GPU `cudaMemcpyAsync` on the stream; on a host rank `memcpy` by the calling thread, complete on return. Throws
/// internal with CUDA's own message.
void bare_copy(Stream& stream, void* to, const void* from, std::size_t bytes);

/// On a GPU `cuStreamWriteValue64` on the stream; on a host rank a store. The stream's GPU must be the caller's current
/// GPU. Throws internal.
void bare_write(Stream& stream, std::uint64_t* to, std::uint64_t value);

/// Stores `value` into these words, one after the other: on a GPU by one `cuStreamBatchMemOp` of at most 256 words.
/// Otherwise like `bare_write`.
void bare_writes(Stream& stream, std::span<std::uint64_t* const> to, std::uint64_t value);

}  // namespace beeline::bench
