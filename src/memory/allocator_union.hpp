// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Making the ranks' allocators equal again after a failure in the middle of a collective allocation.

#include <cstdint>
#include <vector>

#include "beeline/runtime/bootstrap.hpp"
#include "memory/offset_allocator.hpp"

namespace beeline {

/// Collective: what any rank holds as allocated is allocated on all from now on. An allocation that a failure left on
/// some ranks only is lost until the world ends, but no two ranks hand out the same place for different things.
///   allocators  as many on every rank, in the same order
void unite_allocators(Bootstrap& bootstrap, const std::vector<OffsetAllocator*>& allocators, std::int64_t deadline_ns);

}  // namespace beeline
