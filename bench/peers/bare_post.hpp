// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The least that a message of 8 bytes with a signal is: a store, and a store that releases it.

#include <cstdint>
#include <cuda/atomic>

#include "beeline/core/macros.hpp"

namespace beeline::bench {

/// Copies a word from `source` to `destination`, and announces it in `flag`. One thread calls it.
BEELINE_HOST_DEVICE inline void bare_post(std::uint64_t* destination, const std::uint64_t* source, std::uint64_t* flag,
                                          std::uint64_t sequence) {
  *destination = *source;
  cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(*flag).store(sequence, cuda::memory_order_release);
}

}  // namespace beeline::bench
