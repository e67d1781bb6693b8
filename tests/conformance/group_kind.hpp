// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The groups of a grid by kind, so that one kernel is tested with each.

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

/// The kernel `Body{}(group, ctx, report, arguments)` by the first group of this kind; the grid's others do nothing.
template <GroupKind kind, class Body>
struct FirstGroup {
  template <class Grid, class Report, class Arguments>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, Report* report,
                                      Arguments arguments) const {
    if (place_of<kind>(grid).index == 0) Body{}(group_of<kind>(grid), ctx, report, arguments);
  }
};

/// Calls `body.template operator()<kind>()` for each kind that this rank's device has. In worlds of both kinds a thread
/// of a host rank stands in for the warp of a GPU, so that all ranks make as many calls.
template <class Body>
void for_each_group_kind(const beeline::World& world, Body body) {
  body.template operator()<GroupKind::thread>();
  if (world.device().is_gpu())
    body.template operator()<GroupKind::warp>();
  else if (world.mixed())
    body.template operator()<GroupKind::thread>();
  body.template operator()<GroupKind::block>();
}

/// Groups of a kind in a grid of `blocks` of `threads` each.
[[nodiscard]] constexpr std::uint32_t groups_in(GroupKind kind, unsigned blocks, unsigned threads) {
  return kind == GroupKind::block ? blocks : blocks * threads / (kind == GroupKind::warp ? 32 : 1);
}

}  // namespace beeline_test
