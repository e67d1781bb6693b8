// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bare atomics: `cuda::atomic_ref` of system scope on an address of the peer's.

#include <cstdint>
#include <cuda/atomic>

#include "beeline/core/macros.hpp"

namespace beeline::bench {

/// Adds to `*there`; what it held.
BEELINE_HOST_DEVICE inline std::uint64_t bare_fetch_add(std::uint64_t* there, std::uint64_t value) {
  return cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(*there).fetch_add(value,
                                                                                      cuda::memory_order_relaxed);
}

/// Stores `desired` if `*there` is `expected`; what it held.
BEELINE_HOST_DEVICE inline std::uint64_t bare_compare_swap(std::uint64_t* there, std::uint64_t expected,
                                                           std::uint64_t desired) {
  cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(*there).compare_exchange_strong(
      expected, desired, cuda::memory_order_relaxed);
  return expected;
}

/// Stores to `*there`.
BEELINE_HOST_DEVICE inline void bare_store_word(std::uint64_t* there, std::uint64_t value) {
  cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(*there).store(value, cuda::memory_order_relaxed);
}

}  // namespace beeline::bench
