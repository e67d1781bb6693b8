// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks of the byte ranges that are passed to host calls. Texts are made only for errors.

#include <cstddef>

#include "beeline/host/world.hpp"

namespace beeline::detail {

/// An argument of a function, for errors.
struct Argument {
  const char *call, *name;
};

/// Throws invalid_argument if a range reaches beyond the end of the heap or segment in which it begins; in a heap of
/// this host rank, beyond one allocation. The end of memory outside the ranks' slots is not known, and not checked.
void require_extent(const World& world, Argument argument, const void* address, std::size_t bytes);
/// Throws invalid_argument if an address is in the slot of a rank on another node, whose memory is not mapped here.
///   ctx   context of CPU threads;  name  of the argument
void require_mapped(const Context& ctx, const char* name, const void* address);
/// Throws invalid_argument: the address lies outside of this rank's symmetric memory.
[[noreturn]] void refuse_not_symmetric(const World& world, Argument argument, const void* address);
/// Throws invalid_argument if a range begins outside this rank's heaps, or reaches beyond the end of the heap.
void require_symmetric(const World& world, Argument argument, const void* address, std::size_t bytes);
/// The same, but the range may also lie in this rank's areas of segments, where addresses name the parts of any rank.
void require_named(const World& world, Argument argument, const void* address, std::size_t bytes);

}  // namespace beeline::detail
