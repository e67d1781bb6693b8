// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks of the byte ranges that are passed to host calls. Texts are made only for errors.

#include <cstddef>

#include "beeline/host/team.hpp"
#include "beeline/host/world.hpp"

namespace beeline::detail {

/// An argument of a function, for errors.
struct Argument {
  const char *call, *name;
};

/// Throws invalid_argument for a range that begins in a slot, but in no heap and in no rank's part of a segment; for
/// one that reaches beyond the end of the heap or part in which it begins; and, in a heap of this host rank, for one
/// that reaches beyond one allocation. The end of memory outside the ranks' slots is not known, and not checked.
void require_extent(const World& world, Argument argument, const void* address, std::size_t bytes);
/// Throws invalid_argument if an address is in the slot of a rank on another node, whose memory is not mapped here.
///   ctx   context of CPU threads;  name  of the argument
void require_mapped(const Context& ctx, const char* name, const void* address);
/// Throws invalid_argument: the address lies outside of this rank's symmetric memory.
[[noreturn]] void refuse_not_symmetric(const World& world, Argument argument, const void* address);
/// Throws invalid_argument if a range begins outside this rank's heaps, or reaches beyond the end of the heap.
void require_symmetric(const World& world, Argument argument, const void* address, std::size_t bytes);
/// The address on `peer`, a rank of the team, that corresponds to `local` in this rank's slot. Ranks on other nodes
/// have slots, too; copies and streams accept such addresses. Throws invalid_argument for a peer that the team lacks.
[[nodiscard]] void* in_slot_of(const Team& team, void* local, int peer);
/// The same, for a range that is checked as by `require_symmetric`. The range may also begin in the parts of this
/// rank's slot by which operations name others' memory: those of segments, and of aliases for ranks on other nodes.
[[nodiscard]] void* named_at(const Team& team, Argument argument, void* local, std::size_t bytes, int peer);

}  // namespace beeline::detail
