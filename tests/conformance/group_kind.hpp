// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kinds of groups of a grid, so that one kernel can be tested with each.

#include <cstdint>

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

/// The number of groups of a kind in the grid, and the index of the calling thread's group.
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

/// Runs `Body{}(group, ctx, report, arguments)` by the first group of this kind; the grid's other groups do nothing.
template <GroupKind kind, class Body>
struct FirstGroup {
  template <class Grid, class Report, class Arguments>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, Report* report,
                                      Arguments arguments) const {
    if (place_of<kind>(grid).index == 0) Body{}(group_of<kind>(grid), ctx, report, arguments);
  }
};

/// Calls `body.template operator()<kind>()` for each kind that this rank's device has. In mixed worlds a host rank
/// calls it for threads in place of a GPU's warps, so that all ranks make the same number of calls.
template <class Body>
void for_each_group_kind(const beeline::World& world, Body body) {
  body.template operator()<GroupKind::thread>();
  if (world.device().is_gpu())
    body.template operator()<GroupKind::warp>();
  else if (world.mixed())
    body.template operator()<GroupKind::thread>();
  body.template operator()<GroupKind::block>();
}

/// The number of groups of a kind in a grid of `blocks` blocks with `threads` threads each.
[[nodiscard]] constexpr std::uint32_t groups_in(GroupKind kind, unsigned blocks, unsigned threads) {
  return kind == GroupKind::block ? blocks : blocks * threads / (kind == GroupKind::warp ? 32 : 1);
}

}  // namespace beeline_test
