// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Loops that a CPU thread drives and times.

#include <functional>
#include <vector>

#include "beeline/device/impl/machine.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// Collective. On ranks 0 and 1 calls `round()` for each iteration, and `finish()` after each batch, inside its timed
/// part; returns the batches' nanoseconds.
inline std::vector<double> time_on_host(
    const Bench& bench, Rounds rounds, const std::function<void()>& round,
    const std::function<void()>& finish = [] {}) {
  bench.world().barrier();
  std::vector<double> times;
  if (!bench.paired()) return times;
  for (std::uint32_t i = 0; i < rounds.warm_up; ++i) round();
  finish();
  for (std::uint32_t batch = 0; batch < rounds.batches; ++batch) {
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < rounds.iterations; ++i) round();
    finish();
    times.push_back(static_cast<double>(machine::clock_ns() - start));
  }
  return times;
}

}  // namespace beeline::bench
