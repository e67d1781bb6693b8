// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Timed runs of all ranks.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "beeline/host/world.hpp"

namespace apps {

/// One timed run: the slowest rank's time, and the CPU time of all ranks, every thread of their processes included.
struct Sample {
  double seconds, cpu_seconds;
};

/// Collective. Runs `work` once on every rank, starting from a barrier; returns the same sample on every rank.
[[nodiscard]] Sample timed_run(beeline::World& world, const std::function<void()>& work);

/// Runs `work` once, in a program without ranks.
[[nodiscard]] Sample timed_run(const std::function<void()>& work);

/// Number of runs in a sample of `sample_seconds` if one run takes `seconds`; between `fewest` and `most`.
[[nodiscard]] inline int runs_of_sample(double sample_seconds, double seconds, int fewest, int most) {
  return static_cast<int>(std::clamp(std::ceil(sample_seconds / seconds), double(fewest), double(most)));
}

/// Collective. Returns every rank's `mine`, in rank order.
template <class Value>
[[nodiscard]] std::vector<Value> from_all(beeline::World& world, const Value& mine) {
  std::vector<Value> all;
  for (const auto& bytes : world.allgather(std::as_bytes(std::span(&mine, 1))))
    std::memcpy(&all.emplace_back(), bytes.data(), sizeof(Value));
  return all;
}

/// The sample with the median time; `all` must not be empty.
[[nodiscard]] Sample median(std::vector<Sample> all);

}  // namespace apps
