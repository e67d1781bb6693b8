// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Graphs that a kernel launches, without the library. They need relocatable device code, so they have a library of
/// their own.

#include <cstdint>
#include <memory>
#include <vector>

#include "beeline/host/world.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// A kernel of a graph that launches other graphs, one after the other. Each consists of a kernel of one thread that
/// answers.
class DeviceGraphs {
 public:
  /// Most launches of one run: a graph may launch 120 others, and some launches are the warm-up.
  static constexpr std::uint32_t most_iterations = 100;

  /// Throws unavailable, with the reason, if the rank has no GPU or the driver makes no such graphs.
  explicit DeviceGraphs(World& world);
  ~DeviceGraphs();
  DeviceGraphs(const DeviceGraphs&) = delete;
  DeviceGraphs& operator=(const DeviceGraphs&) = delete;

  /// Nanoseconds of each batch of `rounds.iterations` launches; each launch is timed until its answer is seen.
  [[nodiscard]] std::vector<double> time(Rounds rounds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace beeline::bench
