// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A hint to the CPU's caches.

#include <cstdint>

namespace beeline::detail {

/// Fetches the cache line of an address for a store that follows soon, and does not wait for it. Any address may be
/// passed.
inline void prefetch_for_store(std::uintptr_t address) {
  const auto* const line = reinterpret_cast<const char*>(address);
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*line));  // the builtin would fetch it for loads: not all x86 CPUs have this
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace beeline::detail
