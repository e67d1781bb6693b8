// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Barriers, selected by algorithm, in a loop inside one kernel, and the check that no member leaves a barrier early.

#include <cstdint>
#include <functional>

#include "beeline/collectives/channel.hpp"
#include "beeline/core/registry.hpp"
#include "harness/device_count.hpp"
#include "harness/timed_grid.hpp"

namespace beeline::bench {

/// A barrier inside a kernel: between single blocks of the ranks, or (hierarchical) between whole grids.
struct KernelBarrier {
  Algorithm algorithm;
  GridShape shape;
};

class BarrierKernels {
 public:
  /// Collective.
  explicit BarrierKernels(Bench& bench)
      : bench_(bench), timed_(bench, most_blocks), words_(bench.world(), max_ranks), wrong_(bench) {}

  /// The shapes in which `algorithm` is measured.
  [[nodiscard]] std::vector<GridShape> shapes(Algorithm algorithm) const;

  /// Collective. Nanoseconds of each batch by this rank's clock; each batch is a launch.
  [[nodiscard]] std::vector<double> time(const KernelBarrier& barrier, const CollectiveChannel& channel, Rounds rounds);

  /// Collective. Inside a kernel, every rank repeatedly stores random words at every other rank, enters the barrier,
  /// and checks the words. Returns whether this rank found the right words.
  [[nodiscard]] bool holds(const KernelBarrier& barrier, const CollectiveChannel& channel, std::uint64_t seed);
  /// The same for `meet`, which enqueues a barrier on the default stream between a kernel that stores and one that
  /// checks.
  [[nodiscard]] bool holds(const std::function<void()>& meet, std::uint64_t seed);

 private:
  static constexpr unsigned most_blocks = 1024;
  Bench& bench_;
  TimedGrid timed_;
  SymmetricArray<std::uint64_t> words_;
  DeviceCount wrong_;
};

}  // namespace beeline::bench
