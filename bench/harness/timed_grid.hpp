// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Streams of messages that all blocks of a grid move together, timed inside the kernel.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "beeline/device/grid.hpp"
#include "beeline/host/launch.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// When a block began and ended its part, by its device's clock.
struct BlockTimes {
  std::uint64_t start, end;
};

/// Nanoseconds from the first block's start to the last one's end.
[[nodiscard]] inline double whole_of(const std::vector<BlockTimes>& blocks) {
  BlockTimes whole = blocks.front();
  for (const BlockTimes& block : blocks) whole = {std::min(whole.start, block.start), std::max(whole.end, block.end)};
  return static_cast<double>(whole.end - whole.start);
}

/// The part of a message that one block moves: whole lines of 128 bytes, except at the end of the message.
struct Share {
  std::uint64_t offset, bytes;
};
[[nodiscard]] BEELINE_HOST_DEVICE constexpr Share share_of(std::uint64_t bytes, unsigned part, unsigned parts) {
  const std::uint64_t each = ((bytes + parts - 1) / parts + 127) / 128 * 128;
  const std::uint64_t first = each * part < bytes ? each * part : bytes;
  return {first, bytes - first < each ? bytes - first : each};
}

/// The shape of a grid that moves messages.
struct GridShape {
  unsigned blocks, threads;
  [[nodiscard]] Settings settings(bool on_gpu) const {
    return {{"group", on_gpu ? "block" : "host_team"},
            {"threads_per_block", std::uint64_t{threads}},
            {"blocks", std::uint64_t{blocks}}};
  }
};

/// Threads per block: the number in the options, or as many as fit; on a host rank those of the team.
[[nodiscard]] unsigned grid_threads(const Bench& bench);

/// The shapes to measure: the shape in the options, or a sweep; at most `most_blocks` blocks, since all may wait at
/// once. One team on a host rank. Throws no_resource if the requested shape could not be resident.
[[nodiscard]] std::vector<GridShape> grid_shapes(const Bench& bench, unsigned most_blocks);

/// `grid_shapes` for a kernel.
template <class Kernel, class... Args>
[[nodiscard]] std::vector<GridShape> resident_shapes(const Bench& bench) {
  return grid_shapes(bench, resident_blocks<Kernel, Args...>(bench.world(), grid_threads(bench)));
}

/// Numbers of blocks from one up to a full device, at most `most_blocks`, since all may wait at once; 1 on host ranks.
[[nodiscard]] std::vector<unsigned> block_sweep(const Bench& bench, unsigned most_blocks);

/// Collective. Number of blocks of `threads` threads of this kernel that may wait at once on every rank.
template <class Kernel, class... Args>
[[nodiscard]] unsigned resident_everywhere(const Bench& bench, unsigned threads) {
  return static_cast<unsigned>(bench.least(resident_blocks<Kernel, Args...>(bench.world(), threads)));
}

/// Starts timed grids; each batch is a launch.
class TimedGrid {
 public:
  /// Collective.
  TimedGrid(Bench& bench, unsigned most_blocks) : bench_(bench), times_(bench.world(), most_blocks) {}

  [[nodiscard]] BlockTimes* times() const { return times_.data(); }

  /// Collective. Runs the kernel on this rank if it `takes_part`; returns the nanoseconds from the first block's start
  /// to the last block's end.
  template <class Kernel, class... Args>
  double run(const GridShape& shape, bool takes_part, Kernel kernel, Args... args) {
    World& world = bench_.world();
    world.barrier();
    if (!takes_part) return 0;
    launch(world, {.blocks = shape.blocks, .threads = shape.threads, .waits = true}, kernel, args...);
    world.synchronize();
    std::vector<BlockTimes> blocks(shape.blocks);
    world.copy(blocks.data(), times(), blocks.size() * sizeof blocks[0]);
    return whole_of(blocks);
  }

 private:
  Bench& bench_;
  SymmetricArray<BlockTimes> times_;
};

}  // namespace beeline::bench
