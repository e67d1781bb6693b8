// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the arguments of collectives on streams must hold to, before anything is touched. All throw invalid_argument.

#include <cstddef>

#include "beeline/collectives/reduction.hpp"
#include "beeline/core/registry.hpp"
#include "beeline/device/context.hpp"
#include "beeline/host/team.hpp"

namespace beeline::detail {

/// The operation has the algorithm on streams.
void check_row(Operation operation, Algorithm algorithm);
/// Throws unavailable, with the reason, for an algorithm that these members cannot use.
void check_members(Team& team, Algorithm algorithm);

/// Bytes of `parts` times `count` elements.
[[nodiscard]] std::size_t checked_bytes(std::size_t count, std::size_t parts, ElementType type);

void check_reduction(ElementType type, Reduction reduction);

/// A vector of so many bytes lies in memory that this process has mapped, aligned to its elements; one of none may lie
/// nowhere.
///   ctx  of CPU threads
void check_vector(const Context& ctx, const char* name, const void* vector, std::size_t bytes, ElementType type);

struct VectorPlace {
  const void* at;
  std::size_t bytes;
};
/// The two do not overlap.
void check_apart(const VectorPlace& destination, const VectorPlace& source);

}  // namespace beeline::detail
