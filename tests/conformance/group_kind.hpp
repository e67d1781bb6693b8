// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The groups of a grid by kind, so that one kernel is tested with each.

#include "beeline/beeline.hpp"

namespace beeline_test {

/// `block` is a `Block` on a GPU, a `HostTeam` on a host rank; warps exist on GPUs only.
enum class GroupKind { thread, warp, block };

[[nodiscard]] constexpr const char* name(GroupKind kind) {
  return kind == GroupKind::thread ? "thread" : kind == GroupKind::warp ? "warp" : "block";
}

/// The calling thread's group.
template <GroupKind kind, class Grid>
[[nodiscard]] BEELINE_HOST_DEVICE auto group_of(const Grid& grid) {
  if constexpr (kind == GroupKind::thread)
    return beeline::Thread{};
  else if constexpr (kind == GroupKind::warp)
    return beeline::Warp{};
  else
    return grid.block();
}

/// How many groups of this kind the grid has, and which one the calling thread belongs to.
struct GroupPlace {
  unsigned index, count;
};

template <GroupKind kind, class Grid>
[[nodiscard]] BEELINE_HOST_DEVICE GroupPlace place_of(const Grid& grid) {
  if constexpr (kind == GroupKind::thread)
    return {grid.thread_rank(), grid.size()};
  else if constexpr (kind == GroupKind::warp)
    return {grid.thread_rank() / 32, grid.size() / 32};
  else
    return {grid.block_rank(), grid.blocks()};
}

/// Calls `body.template operator()<kind>()` for each kind that this rank's device has.
template <class Body>
void for_each_group_kind(const beeline::World& world, Body body) {
  body.template operator()<GroupKind::thread>();
  if (world.device().is_gpu()) body.template operator()<GroupKind::warp>();
  body.template operator()<GroupKind::block>();
}

}  // namespace beeline_test
