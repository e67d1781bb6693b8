// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Numbers of threads that access the peer's memory, one word per thread.

#include <memory>

#include "harness/timed_grid.hpp"

namespace beeline::bench {

/// The number of active threads, and the grid that contains them: the rest of a host team is idle.
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

/// Threads per block on a GPU: many small blocks reach every multiprocessor. Source: seed 000 section 6.6.
inline constexpr unsigned sweep_block_threads = 64;
/// Source: seed 000 section 6.6.
inline constexpr unsigned most_sweep_threads = 8192;

/// A measurement of `bytes` by a state's `time(rounds)` and `verify(seed)`, with the state's thread shape.
template <class State>
[[nodiscard]] Measurement thread_measurement(const std::shared_ptr<State>& state, const char* operation,
                                             std::uint64_t bytes) {
  Measurement measurement{.operation = operation, .method = "device/peer/signal", .bytes = bytes};
  measurement.settings = state->shape.settings();
  measurement.time = [=](Rounds rounds) { return state->time(rounds); };
  measurement.verify = [=](std::uint64_t seed) { return state->verify(seed); };
  return measurement;
}

/// 1, 2, 4, ... threads, up to 8,192 if `most_blocks` blocks that may wait at once hold so many; on a host rank up to
/// its team. Throws no_resource if `most_blocks` is 0.
[[nodiscard]] std::vector<ThreadShape> thread_shapes(const Bench& bench, unsigned most_blocks);

/// Collective. `thread_shapes` for a kernel.
template <class Kernel, class... Args>
[[nodiscard]] std::vector<ThreadShape> resident_thread_shapes(const Bench& bench) {
  bench.require_alike();
  return thread_shapes(bench, resident_everywhere<Kernel, Args...>(bench, sweep_block_threads));
}

}  // namespace beeline::bench
