// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks of the ranges of bytes that calls of the host are given. No text is made where nothing is wrong.

#include <cstddef>

#include "beeline/host/world.hpp"

namespace beeline::detail {

/// An argument of a function, for errors.
struct Argument {
  const char *call, *name;
};

/// Throws invalid_argument where a range reaches beyond the end of the heap, or of the segments, that it begins in, or,
/// in a heap of this host rank, beyond one allocation; the end of memory outside the ranks' slots is not known.
void require_extent(const World& world, Argument argument, const void* address, std::size_t bytes);
/// Throws invalid_argument where an address is in the slot of a rank on another node, where nothing is mapped.
///   ctx   of CPU threads;  name  of the argument
void require_mapped(const Context& ctx, const char* name, const void* address);
/// Throws invalid_argument: the address lies outside of this rank's symmetric memory.
[[noreturn]] void refuse_not_symmetric(const World& world, Argument argument, const void* address);
/// Both: where a range begins outside this rank's heaps, or reaches beyond the end of one.
void require_symmetric(const World& world, Argument argument, const void* address, std::size_t bytes);

}  // namespace beeline::detail
