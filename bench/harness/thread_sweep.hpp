// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Numbers of threads that access the peer's memory, one word each.

#include <memory>

#include "harness/timed_grid.hpp"

namespace beeline::bench {

/// Threads that take part, and the grid that has them: the rest of a host team looks on.
struct ThreadShape {
  std::uint32_t active;
  GridShape grid;
  [[nodiscard]] Settings settings() const {
    return {{"group", "thread"},
            {"threads", std::uint64_t{active}},
            {"threads_per_block", std::uint64_t{grid.threads}},
            {"blocks", std::uint64_t{grid.blocks}}};
  }
};

/// Threads of a GPU's block: many small blocks reach every multiprocessor. Source: seed 000 section 6.6.
inline constexpr unsigned sweep_block_threads = 64;
/// Source: seed 000 section 6.6.
inline constexpr unsigned most_sweep_threads = 8192;

/// A measurement of `bytes` by a state's `time(rounds)` and `verify(seed)`, with the state's shape.
template <class State>
[[nodiscard]] Measurement thread_measurement(const std::shared_ptr<State>& state, const char* operation,
                                             std::uint64_t bytes) {
  Measurement measurement{.operation = operation, .method = "device/peer/signal", .bytes = bytes};
  measurement.settings = state->shape.settings();
  measurement.time = [=](Rounds rounds) { return state->time(rounds); };
  measurement.verify = [=](std::uint64_t seed) { return state->verify(seed); };
  return measurement;
}

/// 1, 2, 4, ... threads: up to 8,192 of which `most_blocks` blocks may wait at once, or to a host rank's team.
/// Throws no_resource when not one block may.
[[nodiscard]] std::vector<ThreadShape> thread_shapes(const Bench& bench, unsigned most_blocks);

/// Collective. `thread_shapes` for a kernel.
template <class Kernel, class... Args>
[[nodiscard]] std::vector<ThreadShape> resident_thread_shapes(const Bench& bench) {
  bench.require_alike();
  return thread_shapes(bench, resident_everywhere<Kernel, Args...>(bench, sweep_block_threads));
}

}  // namespace beeline::bench
