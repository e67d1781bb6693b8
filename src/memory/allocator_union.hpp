// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Makes the ranks' allocators equal again after a failure in the middle of a collective allocation.

#include <cstdint>
#include <vector>

#include "beeline/runtime/bootstrap.hpp"
#include "memory/offset_allocator.hpp"

namespace beeline {

/// Collective. What is allocated on any rank is allocated on all ranks from now on. An allocation that a failure left
/// on some ranks only is lost until the world ends, but no two ranks use the same offset for different objects.
///   allocators  the same number on every rank, in the same order
void unite_allocators(Bootstrap& bootstrap, const std::vector<OffsetAllocator*>& allocators, std::int64_t deadline_ns);

}  // namespace beeline
