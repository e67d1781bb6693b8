// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory of method task.

#include <cstddef>

namespace random_access {

/// Symmetric memory of a rank for queues, payloads and buffers.
[[nodiscard]] std::size_t task_bytes(int ranks, bool gpus);

}  // namespace random_access
