// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks of the arguments of collectives on streams, before any memory is touched. All throw invalid_argument.

#include <cstddef>

#include "beeline/collectives/reduction.hpp"
#include "beeline/core/registry.hpp"
#include "beeline/device/context.hpp"
#include "beeline/host/team.hpp"

namespace beeline::detail {

/// Checks that the operation has the algorithm on streams.
void check_row(Operation operation, Algorithm algorithm);
/// Throws unavailable, with the reason, for an algorithm that these members cannot use.
void check_members(Team& team, Algorithm algorithm);

/// Bytes of `parts` times `count` elements.
[[nodiscard]] std::size_t checked_bytes(std::size_t count, std::size_t parts, ElementType type);

void check_reduction(ElementType type, Reduction reduction);

/// Checks that a vector of `bytes` bytes is in memory that this process has mapped, and aligned to its elements. An
/// empty vector may have any address.
///   ctx  context of CPU threads
void check_vector(const Context& ctx, const char* name, const void* vector, std::size_t bytes, ElementType type);

struct VectorPlace {
  const void* at;
  std::size_t bytes;
};
/// Checks that the two vectors do not overlap.
void check_apart(const VectorPlace& destination, const VectorPlace& source);

}  // namespace beeline::detail
