// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Timed runs of all ranks.

#include <functional>
#include <vector>

#include "beeline/host/world.hpp"

namespace apps {

/// One timed run: the slowest rank's time, and the CPU time of all ranks, every thread of their processes included.
struct Sample {
  double seconds, cpu_seconds;
};

/// Collective. Runs `work` once on every rank, all from a barrier; the same sample on every rank.
[[nodiscard]] Sample timed_run(beeline::World& world, const std::function<void()>& work);

/// The sample of the median time; `all` holds at least one.
[[nodiscard]] Sample median(std::vector<Sample> all);

}  // namespace apps
