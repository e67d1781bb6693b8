// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Definitions that the litmus kernels share: counts of outcomes, and the meeting of the groups between two rounds.

#include <cstddef>
#include <cstdint>

#include "beeline/beeline.hpp"
#include "tests/litmus/litmus.hpp"

namespace beeline_test {

/// Adds one thread's counts to its rank's counts, in memory of its device.
BEELINE_HOST_DEVICE inline void add_outcomes(Outcomes* total, const Outcomes& mine) {
  using beeline::detail::DeviceAtomic;
  DeviceAtomic<std::uint64_t>(total->instances).fetch_add(mine.instances, std::memory_order_relaxed);
  DeviceAtomic<std::uint64_t>(total->forbidden).fetch_add(mine.forbidden, std::memory_order_relaxed);
  DeviceAtomic<std::uint64_t>(total->overlapped).fetch_add(mine.overlapped, std::memory_order_relaxed);
}

/// Where the groups of one index, one on each rank, meet.
struct MeetingPlace {
  std::uint64_t* turns;  ///< [ranks, groups] how often each rank's group has arrived
  std::uint32_t groups, index;
};

/// Blocks until every rank's group of this index has arrived `turn` times; orders memory.
template <class Group>
BEELINE_HOST_DEVICE beeline::Status meet(const Group& group, const beeline::Context& ctx, const MeetingPlace& place,
                                         std::uint64_t turn) {
  using beeline::Status;
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
    if (peer != ctx.rank)
      beeline::signal(group, ctx, place.turns + std::size_t{ctx.rank} * place.groups + place.index, turn, peer);
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
    if (peer == ctx.rank) continue;
    const std::uint64_t* theirs = place.turns + std::size_t{peer} * place.groups + place.index;
    const Status status = beeline::wait(group, ctx, theirs, beeline::Compare::greater_equal, turn, peer);
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

/// The grid of a test and the work of each group, which accesses `cells` cells of `words` words in each round. A round
/// has many cells, because on a busy machine every meeting waits for the scheduler.
struct Shape {
  unsigned blocks, threads;
  std::uint32_t groups, cells, words;
  [[nodiscard]] std::size_t all_cells() const { return std::size_t{groups} * cells; }
  [[nodiscard]] std::size_t all_words() const { return all_cells() * words; }
  [[nodiscard]] std::uint64_t rounds(std::uint64_t instances) const {
    return (instances + all_words() - 1) / all_words();
  }
};

/// Every thread is a group of its own, with one word in each cell.
[[nodiscard]] inline Shape shape_of_threads(const beeline::World& world) {
  return world.device().is_gpu() ? Shape{16, 128, 16 * 128, 16, 1} : Shape{1, 1, 1, 512, 1};
}

/// Every block is a group, with some words for each of its threads.
[[nodiscard]] inline Shape shape_of_blocks(const beeline::World& world) {
  return world.device().is_gpu() ? Shape{16, 128, 16, 16, 256} : Shape{1, 1, 1, 512, 4};
}

[[nodiscard]] inline beeline::LaunchOptions options_of(const Shape& shape) {
  beeline::LaunchOptions options;
  options.blocks = shape.blocks;
  options.threads = shape.threads;
  options.waits = true;
  return options;
}

/// Launches `kernel(grid, context, arguments)`, waits for its end, and returns its counts.
template <class Kernel, class Arguments>
[[nodiscard]] Outcomes launch_and_count(beeline::World& world, const Shape& shape, Kernel kernel, Arguments arguments) {
  const beeline::SymmetricArray<Outcomes> counted(world, 1);
  arguments.outcomes = counted.data();
  beeline::launch(world, options_of(shape), kernel, arguments);
  world.synchronize();
  Outcomes outcomes{};
  world.copy(&outcomes, counted.data(), sizeof outcomes);
  world.barrier();
  return outcomes;
}

}  // namespace beeline_test
