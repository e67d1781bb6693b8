// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The sizes of the queues of scheme task.

#include <cstddef>
#include <cstdint>

#include "beeline/core/task.hpp"

namespace ring_reduction {

/// Largest number of lanes, each with its own queue and worker; multiprocessors of a GPU that the workers share.
inline constexpr unsigned most_task_lanes = 32, most_task_multiprocessors = 4;
inline constexpr std::uint32_t task_depth = 64;

/// Symmetric memory of a rank for `lanes` lanes.
[[nodiscard]] constexpr std::size_t task_queue_bytes(int ranks, unsigned lanes) {
  return lanes * task_depth * beeline::task_words * 16 * static_cast<std::size_t>(ranks);
}

}  // namespace ring_reduction
