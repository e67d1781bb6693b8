// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the queues of scheme task take.

#include <cstddef>
#include <cstdint>

#include "beeline/core/task.hpp"

namespace ring_reduction {

/// Most lanes, each with a queue and a worker of its own; multiprocessors of a GPU that the workers share.
inline constexpr unsigned most_task_lanes = 32, most_task_multiprocessors = 4;
inline constexpr std::uint32_t task_depth = 64;

/// Symmetric memory of a rank of `ranks` for so many lanes.
[[nodiscard]] constexpr std::size_t task_queue_bytes(int ranks, unsigned lanes) {
  return lanes * task_depth * beeline::task_words * 16 * static_cast<std::size_t>(ranks);
}

}  // namespace ring_reduction
